import { describe, expect, it } from 'vitest';
import { talkRouting } from '../../actors/call-routing.ts';
import { type CallControl, isTalking } from '../../machines/call-control.ts';
import type { MediaCommand } from '../../machines/call-events.ts';
import type { LegId } from '../../machines/events.ts';
import * as fc from '../properties.ts';
import { AGENT_MEDIA, EVENTS, PATHS, startCall } from './call-bench.ts';

const LEGS = ['agent', 'customer', 'leg_1', 'leg_2', 'leg_3'] as const;
const leg = fc.constantFrom<LegId>(...LEGS);
const target = fc.constantFrom<LegId>('leg_1', 'leg_2', 'leg_3');

const control: fc.Arbitrary<CallControl> = fc.oneof(
  fc.record({ type: fc.constantFrom('mute' as const, 'unmute' as const, 'resume' as const, 'leg.drop' as const), leg }),
  fc.record({ type: fc.constant('hold' as const), leg, music: fc.boolean() }),
  fc.record({
    ...{ type: fc.constant('transfer' as const), leg, target },
    mode: fc.constantFrom('blind' as const, 'attended' as const),
  }),
  fc.constantFrom<CallControl>({ type: 'transfer.complete' }, { type: 'transfer.cancel' }),
  fc.record({
    ...{ type: fc.constant('leg.add' as const), leg: target },
    ...{ role: fc.constant('party' as const), mode: fc.constant(null) },
  }),
);

/** One event from outside. `media` answers the oldest command that waits for it. */
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('control' as const), control }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('media' as const), hasPort: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('answer' as const, 'end' as const), leg: target }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('end' as const, 'silence' as const), leg }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('time' as const), ms: fc.nat(20_000) }) },
);
type Step = typeof step extends fc.Arbitrary<infer Each> ? Each : never;

function talking() {
  const call = startCall();
  const answers = new Map<string, number>();
  call.actor.on('controlled', ({ controlId }) => void answers.set(controlId, (answers.get(controlId) ?? 0) + 1));
  for (const name of PATHS.bridged) call.receive(name);
  const waiting = () =>
    call.mediaCommands.filter(({ type }) => type === 'control' || type === 'add-party').slice(answered);
  const states = new Map<LegId, 'answered' | 'over'>([
    ['agent', 'answered'],
    ['customer', 'answered'],
  ]);
  /** Added legs that were refused, or have ended: their ids are not used again. */
  const used = new Set<LegId>();
  let answered = 0;
  let asked = 0;

  function answerMedia(command: MediaCommand, hasPort: boolean): void {
    answered += 1;
    if (command.type === 'control') call.send({ ...command, type: 'control.done' });
    else if (command.type !== 'add-party') return;
    else if (!hasPort) call.send({ type: 'guest.unavailable', legId: command.leg, refusal: 'no_free_channel' });
    else call.send({ type: 'guest.opened', legId: command.leg, local: { host: '127.0.0.1', rtpPort: 10_004 } });
  }

  function ask(requested: CallControl): void {
    const added =
      requested.type === 'transfer' ? requested.target : requested.type === 'leg.add' ? requested.leg : null;
    if (added !== null && used.has(added)) return;
    asked += 1;
    const sent = call.mediaCommands.length;
    call.send({ type: 'control.requested', controlId: `${asked}`, control: requested });
    if (added !== null && call.mediaCommands.length > sent) used.add(added);
  }

  return {
    ...call,
    answers,
    states,
    waiting,
    take(each: Step): void {
      if (call.actor.getSnapshot().status !== 'active') return;
      if (each.kind === 'control') ask(each.control);
      else if (each.kind === 'time') call.clock.increment(each.ms);
      else if (each.kind === 'silence') call.send({ type: 'rtp.timeout', leg: each.leg, silentForMs: 20_000 });
      else if (each.kind === 'media') {
        const [command] = waiting();
        if (command !== undefined) answerMedia(command, each.hasPort);
      } else if (call.dialed.includes(each.leg) && states.get(each.leg) !== 'over') {
        const wasAnswered = states.has(each.leg);
        states.set(each.leg, each.kind === 'answer' ? 'answered' : 'over');
        if (each.kind === 'answer') {
          if (wasAnswered) return;
          call.dialog(each.leg)({ type: 'leg.answered', sipStatus: 200, media: AGENT_MEDIA });
          call.send({ type: 'guest.connected', legId: each.leg });
        } else if (wasAnswered) {
          call.dialog(each.leg)({ type: 'leg.ended', by: 'peer', hangupCause: 'NORMAL_CLEARING' });
        } else {
          const refusal = { sipStatus: 486, hangupCause: 'USER_BUSY', detail: 'busy' } as const;
          call.dialog(each.leg)({ type: 'leg.refused', ...refusal });
        }
      }
    },
  };
}

/** Media routing and event log must agree with the talk once no command waits. */
function expectInStep(call: ReturnType<typeof talking>): void {
  const snapshot = call.actor.getSnapshot();
  if (!snapshot.matches({ active: { live: 'bridged' } }) || call.waiting().length > 0) return;
  const { talk } = snapshot.context;
  const last = call.mediaCommands.findLast((command) => command.type === 'route' || command.type === 'control');
  if (last !== undefined && 'talk' in last) expect(talkRouting(last.talk)).toEqual(talkRouting(talk));
  for (const id of LEGS.filter((each) => isTalking(talk, each))) {
    const moves = call.moves.filter(({ leg: own, data }) => (own ?? data?.leg_id) === id).map(({ event }) => event);
    const isHeldByLog = moves.findLast((event) => event === 'call.held' || event === 'call.resumed') === 'call.held';
    expect([id, isHeldByLog]).toEqual([id, (talk.held[id] ?? null) !== null]);
  }
}

describe('a call with events in any order', () => {
  it('keeps media and log in step with the talk, ends once with every transfer, and hangs up each leg', async () => {
    const run = async (steps: Step[]) => {
      const call = talking();
      for (const each of steps) {
        call.take(each);
        expectInStep(call);
      }
      call.send(EVENTS['hangup.api']!);
      for (let seconds = 0; seconds < 20; seconds += 1) {
        call.clock.increment(1_000);
        await call.quiet();
      }
      expect([call.actor.getSnapshot().status, call.settled.length]).toEqual(['done', 1]);
      const isLeft = (each: LegId) =>
        call.states.get(each) !== 'over' && !call.hangups.some((hung) => hung.leg === each);
      expect(call.dialed.filter(isLeft)).toEqual([]);
      expect([...call.answers.values()].filter((times) => times !== 1)).toEqual([]);
      const transfers = call.moves.map(({ event }) => event).filter((event) => event.startsWith('transfer.'));
      expect(transfers.map((event) => event === 'transfer.started')).toEqual(transfers.map((_, i) => i % 2 === 0));
      expect(transfers.length % 2).toBe(0);
    };
    await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 40, size: 'max' }), run), { numRuns: 300 });
  });
});
