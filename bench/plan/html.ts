import type { Charts } from '../report/chart.js';
import { html, type HtmlPart } from '../report/markup.js';
import { chartsHtml, noticeHtml, pageHtml, tableHtml, type Section } from '../report/page.js';
import { planCharts, simulationCharts, whatIfCharts } from './charts.js';
import { costTable, inputTable, planTables, simulationTables, whatIfTable, type PlanTable } from './print.js';
import type { PlanAnswer } from './session.js';

/** One self-contained page: charts, every figure, every input, every cost with its source. */
export function planPage(answered: PlanAnswer, charts: Charts): string {
  const { costs, given, plan, simulation, whatIf } = answered;
  const { demand, sizing } = plan;
  const sections: readonly (Section | undefined)[] = [
    section('needed', 'What is needed', [
      noticeHtml('warn', 'Before you believe it', plan.warnings),
      chartsHtml(planCharts(charts, plan)),
      planTables(plan).map(titled),
    ]),
    simulation &&
      section('simulated', 'What waiting does', [
        chartsHtml(simulationCharts(charts, simulation)),
        simulationTables(simulation).map(titled),
      ]),
    whatIf &&
      section('what-if', `What if ${whatIf.input} were different`, [
        chartsHtml(whatIfCharts(charts, whatIf)),
        table(whatIfTable(whatIf)),
      ]),
    section('inputs', 'What was asked', table(inputTable(given))),
    section('costs', 'What things cost', table(costTable(costs))),
  ];
  const count = (value: number): string => Math.round(value).toLocaleString('en-US');
  return pageHtml({
    title: `${count(sizing.nodes)} nodes for ${count(demand.sessions)} sessions`,
    lead: 'A plan of Topicast: what a launch needs, worked out from what single things cost.',
    facts: [
      ['deliveries', `${count(demand.deliveries)} a second`],
      ['decided by', sizing.bound],
      ['Redis', `${plan.redis.masters} masters, ${plan.redis.replicas} replicas`],
      ['NATS', `${plan.nats.servers} servers`],
    ],
    sections: sections.filter((one) => one !== undefined),
  });
}

function section(id: string, title: string, body: HtmlPart): Section {
  return { id, title, body };
}

function titled(one: PlanTable): HtmlPart {
  return html`<h3>${one.title}</h3>
    ${table(one)}`;
}

function table({ body, head, leftColumns }: PlanTable): HtmlPart {
  return tableHtml(head, body, leftColumns);
}
