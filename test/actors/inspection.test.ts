import { describe, expect, it } from 'vitest';
import { createActor, fromCallback, setup } from 'xstate';
import { inspectTransitions } from '../../actors/inspection.ts';
import { createTestLogger } from './fakes.ts';

const machine = setup({
  types: {} as {
    context: { number: string };
    input: { number: string };
    events: { type: 'leg.answered'; number: string };
  },
  actors: { port: fromCallback(() => {}) },
}).createMachine({
  context: ({ input }) => input,
  invoke: { src: 'port' },
  initial: 'ringing',
  states: { ringing: { on: { 'leg.answered': 'talking' } }, talking: { type: 'final' } },
  onDone: {},
});

describe('log of transitions', () => {
  it('names event and state at debug level with constant messages', () => {
    const { lines } = runInspected();
    expect(lines.map(({ level, message }) => [level, message])).toEqual([
      ['debug', 'actor transition'],
      ['debug', 'actor transition'],
    ]);
    expect(lines[1]?.fields).toMatchObject({ event: 'leg.answered', state: 'talking' });
    expect(Object.keys(lines[1]?.fields ?? {}).sort()).toEqual(['actor', 'event', 'state', 'status']);
  });

  it('contains neither payloads nor contexts', () => {
    const { lines } = runInspected();
    expect(lines).toHaveLength(2);
    expect(JSON.stringify(lines)).not.toContain('98100');
  });

  it('omits actors without states', () => {
    const { lines, root, inspected } = runInspected();
    expect(inspected.size).toBe(2);
    expect(new Set(lines.map(({ fields }) => fields.actor))).toEqual(new Set([root]));
  });
});

function runInspected() {
  const logger = createTestLogger();
  const log = inspectTransitions(logger);
  const inspected = new Set<string>();
  const actor = createActor(machine, {
    input: { number: '+919810000001' },
    inspect(event) {
      if (event.type === '@xstate.snapshot') inspected.add(event.actorRef.sessionId);
      log(event);
    },
  });
  actor.start();
  actor.send({ type: 'leg.answered', number: '+919810000002' });
  return { lines: logger.lines, root: actor.sessionId, inspected };
}
