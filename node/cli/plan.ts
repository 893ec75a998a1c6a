import type { Command } from 'commander';
import type { PlanParts } from './plan-command.js';

/** `plan` on the command line of the product. It is loaded when it is wanted. */
export function addPlan(program: Command, parts: PlanParts): void {
  program
    .command('plan')
    .description('Work out what a launch needs: nodes, Redis, NATS, network.')
    .argument('[options...]')
    .allowUnknownOption()
    .helpOption(false)
    .action(async (args: string[]) => (await import('./plan-command.js')).plan(args, parts));
}
