import { ClusterView } from './cluster.js';
import { byId } from './dom.js';
import { startLive } from './live.js';
import { Session } from './session.js';

const session = new Session();
const cluster = new ClusterView(session);
startLive(session);
startAccess();
startViews();
session.addEventListener('state', ({ detail }) => showState(detail));
session.start(session);

/** The view is in the address, so that it can be linked to and gone back from. */
function startViews() {
  const show = () => {
    const view = location.hash === '#cluster' ? 'cluster' : 'live';
    for (const name of ['live', 'cluster']) {
      byId(`view-${name}`).hidden = name !== view;
      if (name === view) byId(`tab-${name}`).setAttribute('aria-current', 'page');
      else byId(`tab-${name}`).removeAttribute('aria-current');
    }
    cluster.show(view === 'cluster');
  };
  window.addEventListener('hashchange', show);
  show();
}

function startAccess() {
  const access = byId('access');
  byId('token').value = session.token;
  byId('user').value = session.user;
  showIdentity();
  byId('access-form').addEventListener('submit', (event) => {
    event.preventDefault();
    session.start({ token: byId('token').value.trim(), user: byId('user').value.trim() });
    showIdentity();
    cluster.restart();
    access.open = false;
    byId('access-summary').focus();
  });
  access.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape') return;
    access.open = false;
    byId('access-summary').focus();
  });
  document.addEventListener('pointerdown', ({ target }) => {
    if (!access.contains(target)) access.open = false;
  });
}

function showIdentity() {
  const { token, user } = session;
  byId('access-summary').textContent =
    token !== '' ? 'Access: token' : user !== '' ? `Access: ${user}` : 'Access';
  if (byId('push-user').value === '') {
    byId('push-user').value = user === '' && token === '' ? 'anonymous' : user;
  }
}

function showState({ degraded, error, reason, retryMs, state }) {
  const seconds = Math.ceil((retryMs ?? 0) / 1000);
  const texts = {
    connecting: 'Connecting…',
    open: degraded === undefined ? 'Connected' : `Connected, without ${degraded.join(' and ')}`,
    waiting: `Trying again in ${seconds} s`,
    closed: error?.code === 'unauthorized' ? 'Token needed' : 'Closed',
  };
  const place = byId('state');
  place.dataset.state = state === 'open' && degraded !== undefined ? 'degraded' : state;
  place.title = reason ?? '';
  byId('state-text').textContent = texts[state];
  if (error?.code !== 'unauthorized') return;
  byId('access').open = true;
  byId('token').focus();
}
