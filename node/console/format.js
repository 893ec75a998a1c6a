const whole = new Intl.NumberFormat('en');
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
const clock = new Intl.DateTimeFormat('en-GB', {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
});

export const count = (value) => whole.format(value);

/** At most five digits wide. */
export const compact = (value) => (value < 10_000 ? whole.format(value) : short.format(value));

/** Of something a second. */
export function rate(value) {
  if (value > 0 && value < 0.05) return '<0.1';
  return value < 10 ? String(Math.round(value * 10) / 10) : compact(Math.round(value));
}

export const timeOfDay = (ms) => clock.format(ms);

export function milliseconds(value) {
  return value < 10 ? `${value.toFixed(1)} ms` : `${whole.format(Math.round(value))} ms`;
}

/** `3 d 4 h`, `4 h 5 min`, `5 min`, `12 s` */
export function duration(sec) {
  const [days, hours, minutes] = [
    Math.floor(sec / 86_400),
    Math.floor((sec % 86_400) / 3600),
    Math.floor((sec % 3600) / 60),
  ];
  if (days > 0) return `${days} d ${hours} h`;
  if (hours > 0) return `${hours} h ${minutes} min`;
  return minutes > 0 ? `${minutes} min` : `${Math.floor(sec)} s`;
}
