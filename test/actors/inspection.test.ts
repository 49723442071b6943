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

describe('the log of transitions', () => {
  it('tells which event led to which state, at debug level, in constant words', () => {
    const { lines } = runInspected();
    expect(lines.map(({ level, message }) => [level, message])).toEqual([
      ['debug', 'actor transition'],
      ['debug', 'actor transition'],
    ]);
    expect(lines[1]?.fields).toMatchObject({ event: 'leg.answered', state: 'talking' });
    expect(Object.keys(lines[1]?.fields ?? {}).sort()).toEqual(['actor', 'event', 'state', 'status']);
  });

  it('never tells the payload of an event nor the context of a machine', () => {
    const { lines } = runInspected();
    expect(JSON.stringify(lines)).not.toContain('98100');
  });

  it('says nothing of actors without states', () => {
    const { lines } = runInspected();
    expect(lines.every(({ fields }) => fields.state !== undefined)).toBe(true);
  });
});

function runInspected() {
  const logger = createTestLogger();
  const actor = createActor(machine, {
    input: { number: '+919810000001' },
    inspect: inspectTransitions(logger),
  });
  actor.start();
  actor.send({ type: 'leg.answered', number: '+919810000002' });
  return logger;
}
