import { describe, expect, it } from 'vitest';
import { createActor, fromCallback, SimulatedClock, sendTo, setup } from 'xstate';
import type { LegEvent, RemoteMedia } from '../../machines/events.ts';
import {
  type DialogCommand,
  type DialogInput,
  type LegCommand,
  type LegInput,
  type LegReport,
  legMachine,
} from '../../machines/leg.machine.ts';

const MEDIA: RemoteMedia = {
  host: '127.0.0.1',
  rtpPort: 20_000,
  rtcpPort: 20_001,
  codec: 'PCMU',
  payloadType: 0,
  telephoneEventPayloadType: 101,
  direction: 'sendrecv',
};
const RING_TIMEOUT_MS = 30_000;
const CLEAR_TIMEOUT_MS = 4_000;

type Step = LegEvent | LegCommand | { type: 'wait'; forMs: number };

const EVENTS: Record<string, Step> = {
  ringing: { type: 'leg.ringing', sipStatus: 180, earlyMedia: null },
  answered: { type: 'leg.answered', sipStatus: 200, media: MEDIA },
  media: { type: 'leg.media', media: MEDIA },
  busy: { type: 'leg.refused', sipStatus: 486, hangupCause: 'USER_BUSY', detail: 'busy here' },
  timedOut: { type: 'leg.refused', sipStatus: 408, hangupCause: 'RECOVERY_ON_TIMER_EXPIRE', detail: 'no answer' },
  bye: { type: 'leg.ended', by: 'peer', hangupCause: 'NORMAL_CLEARING' },
  cleared: { type: 'leg.ended', by: 'local', hangupCause: 'ORIGINATOR_CANCEL' },
  lost: { type: 'leg.lost', detail: 'the SIP server went away' },
  hangup: { type: 'hangup', cause: 'ORIGINATOR_CANCEL' },
  hold: { type: 'hold', isHeld: true },
  glare: { type: 'leg.glare' },
  pressed: { type: 'leg.pressed', digit: '5', durationMs: 160 },
  ringTimeout: { type: 'wait', forMs: RING_TIMEOUT_MS },
  clearTimeout: { type: 'wait', forMs: CLEAR_TIMEOUT_MS },
};

/** Events that lead from `dialing` to each state. */
const PATHS = {
  dialing: [],
  ringing: ['ringing'],
  answered: ['ringing', 'answered'],
  clearing: ['ringing', 'answered', 'hangup'],
  abandoned: ['ringing', 'ringTimeout'],
  gone: ['busy'],
} as const;

/** State x event: the next state, reports to the call, requests to the dialog. */
const TABLE: Record<keyof typeof PATHS, Partial<Record<keyof typeof EVENTS, string>>> = {
  dialing: {
    ringing: 'ringing reports agent.ringing 180',
    answered: 'answered reports agent.answered',
    busy: 'gone reports refused 486 USER_BUSY',
    timedOut: 'gone reports refused 408 RECOVERY_ON_TIMER_EXPIRE',
    bye: 'gone reports ended - NORMAL_CLEARING',
    cleared: 'gone reports ended - ORIGINATOR_CANCEL',
    lost: 'gone reports lost - NETWORK_OUT_OF_ORDER',
    hangup: 'clearing requests ORIGINATOR_CANCEL',
    ringTimeout: 'abandoned reports no-answer - NO_ANSWER requests NO_ANSWER',
  },
  ringing: {
    ringing: 'ringing reports agent.ringing 180',
    answered: 'answered reports agent.answered',
    busy: 'gone reports refused 486 USER_BUSY',
    timedOut: 'gone reports no-answer 408 NO_ANSWER',
    bye: 'gone reports ended - NORMAL_CLEARING',
    cleared: 'gone reports ended - ORIGINATOR_CANCEL',
    lost: 'gone reports lost - NETWORK_OUT_OF_ORDER',
    hangup: 'clearing requests ORIGINATOR_CANCEL',
    ringTimeout: 'abandoned reports no-answer - NO_ANSWER requests NO_ANSWER',
  },
  answered: {
    hold: 'answered requests hold true',
    media: 'answered reports agent.media',
    pressed: 'answered reports dtmf.pressed',
    busy: 'gone reports refused 486 USER_BUSY',
    timedOut: 'gone reports no-answer 408 NO_ANSWER',
    bye: 'gone reports ended - NORMAL_CLEARING',
    cleared: 'gone reports ended - ORIGINATOR_CANCEL',
    lost: 'gone reports lost - NETWORK_OUT_OF_ORDER',
    hangup: 'clearing requests ORIGINATOR_CANCEL',
  },
  clearing: {
    busy: 'gone reports refused 486 USER_BUSY',
    timedOut: 'gone reports no-answer 408 NO_ANSWER',
    bye: 'gone reports ended - NORMAL_CLEARING',
    cleared: 'gone reports ended - ORIGINATOR_CANCEL',
    lost: 'gone reports lost - NETWORK_OUT_OF_ORDER',
    clearTimeout: 'gone reports ended - ORIGINATOR_CANCEL',
    // Longer than the clear timeout, so that one passes too.
    ringTimeout: 'gone reports ended - ORIGINATOR_CANCEL',
  },
  abandoned: {
    busy: 'gone',
    timedOut: 'gone',
    bye: 'gone',
    cleared: 'gone',
    lost: 'gone',
    clearTimeout: 'gone',
    ringTimeout: 'gone',
  },
  gone: {},
};

describe('leg machine, state by event', () => {
  for (const state of Object.keys(TABLE) as (keyof typeof PATHS)[]) {
    for (const event of Object.keys(EVENTS)) {
      const cell = TABLE[state][event];
      it(`in ${state}, ${event} ${cell === undefined ? 'changes nothing' : `leads to ${cell}`}`, () => {
        const leg = startLeg();
        for (const step of PATHS[state]) leg.take(step);
        expect(leg.state()).toBe(state);
        const reportsBefore = leg.reports.length;
        const requestsBefore = leg.requests.length;
        leg.take(event);
        const reports = leg.reports.slice(reportsBefore).map((report) => ` reports ${inWords(report)}`);
        const requests = leg.requests.slice(requestsBefore).map((cause) => ` requests ${cause}`);
        expect([leg.state(), ...reports, ...requests].join('')).toBe(cell ?? state);
      });
    }
  }
});

describe('leg', () => {
  it('forwards early media with each ringing, because a later 183 may name another port', () => {
    const leg = startLeg();
    const moved = { ...MEDIA, rtpPort: 30_000 };
    leg.dialog({ type: 'leg.ringing', sipStatus: 183, earlyMedia: MEDIA });
    leg.dialog({ type: 'leg.ringing', sipStatus: 183, earlyMedia: moved });
    expect(leg.reports).toEqual([
      { type: 'agent.ringing', sipStatus: 183, earlyMedia: MEDIA },
      { type: 'agent.ringing', sipStatus: 183, earlyMedia: moved },
    ]);
  });

  it('passes call, leg and media address to its dialog', () => {
    expect(startLeg().dialogInput()).toEqual({
      callId: 'call-1',
      leg: 'agent',
      local: { host: '127.0.0.1', rtpPort: 10_000 },
    });
  });

  it('counts the ring timeout from the INVITE, ringing or not', () => {
    const leg = startLeg();
    leg.clock.increment(RING_TIMEOUT_MS - 1);
    leg.take('ringing');
    expect(leg.state()).toBe('ringing');
    leg.clock.increment(1);
    expect(leg.state()).toBe('abandoned');
  });

  it('states in the ring timeout whether the peer rang', () => {
    const details = [startLeg(), startLeg()].map((leg, index) => {
      if (index === 0) leg.take('ringing');
      leg.clock.increment(RING_TIMEOUT_MS);
      return leg.reports.at(-1);
    });
    expect(details).toMatchObject([
      { ending: { kind: 'no-answer', detail: 'rang for 30 s without an answer' } },
      { ending: { kind: 'no-answer', detail: 'did not ring within 30 s' } },
    ]);
  });

  it('stops the ring timeout when answered', () => {
    const leg = startLeg();
    leg.take('answered');
    leg.clock.increment(10 * RING_TIMEOUT_MS);
    expect(leg.state()).toBe('answered');
    expect(leg.requests).toEqual([]);
  });

  it('waits in clearing for the end of an answer that crossed the CANCEL, without connecting it', () => {
    const leg = startLeg();
    leg.take('ringing');
    leg.take('hangup');
    leg.take('answered');
    expect(leg.state()).toBe('clearing');
    leg.take('cleared');
    expect(leg.reports.map(inWords)).toEqual(['agent.ringing 180', 'ended - ORIGINATOR_CANCEL']);
  });

  it('hangs up once, with the first cause', () => {
    const leg = startLeg();
    leg.send({ type: 'hangup', cause: 'MAX_DURATION' });
    leg.send({ type: 'hangup', cause: 'NORMAL_CLEARING' });
    expect(leg.requests).toEqual(['MAX_DURATION']);
  });

  it('reports the cause of its hang-up when the end is never confirmed', () => {
    const leg = startLeg();
    leg.take('answered');
    leg.send({ type: 'hangup', cause: 'MAX_DURATION' });
    leg.clock.increment(CLEAR_TIMEOUT_MS);
    expect(leg.reports.at(-1)).toMatchObject({ type: 'agent.gone', ending: { hangupCause: 'MAX_DURATION' } });
  });

  it('counts as lost when its dialog fails to start', () => {
    const leg = startLeg({ broken: true });
    expect(leg.reports.map(inWords)).toEqual(['lost - NORMAL_TEMPORARY_FAILURE']);
    expect(leg.state()).toBe('gone');
  });

  for (const path of [['busy'], ['answered', 'bye'], ['hangup', 'clearTimeout'], ['ringTimeout', 'answered', 'bye']]) {
    it(`reports its end exactly once after ${path.join(', ')}`, () => {
      const leg = startLeg();
      for (const step of path) leg.take(step);
      for (const step of ['bye', 'busy', 'lost', 'clearTimeout']) leg.take(step);
      expect(leg.reports.filter(({ type }) => type === 'agent.gone')).toHaveLength(1);
    });
  }

  it('ends its dialog when stopped from outside', () => {
    const leg = startLeg();
    leg.take('answered');
    leg.stop();
    expect(leg.dialogsEnded()).toBe(1);
  });
});

describe('re-INVITE after a glare', () => {
  it('repeats after three seconds while the leg is up', () => {
    const leg = startLeg();
    for (const name of ['ringing', 'answered', 'hold', 'glare']) leg.take(name);
    leg.clock.increment(2_999);
    expect(leg.requests).toEqual(['hold true']);
    leg.clock.increment(1);
    expect(leg.requests).toEqual(['hold true', 'offer-again']);
  });

  it('does not repeat after the leg ended', () => {
    const leg = startLeg();
    for (const name of ['ringing', 'answered', 'glare', 'bye']) leg.take(name);
    leg.clock.increment(10_000);
    expect(leg.requests).toEqual([]);
  });
});

/** A leg below a recording parent. */
function startLeg({ broken = false }: { broken?: boolean } = {}) {
  const clock = new SimulatedClock();
  const reports: LegReport[] = [];
  const requests: string[] = [];
  let dialogInput: unknown;
  let sendToLeg: (event: LegEvent) => void = () => undefined;
  let ended = 0;
  const machine = legMachine.provide({
    actors: {
      dialog: fromCallback<DialogCommand, DialogInput>(({ input, receive, sendBack }) => {
        if (broken) throw new Error('no dialog');
        dialogInput = input;
        sendToLeg = sendBack;
        receive((command) => requests.push(asText(command)));
        return () => {
          ended += 1;
        };
      }),
    },
  });
  const input: LegInput = {
    callId: 'call-1',
    leg: 'agent',
    local: { host: '127.0.0.1', rtpPort: 10_000 },
    ringTimeoutMs: RING_TIMEOUT_MS,
    clearTimeoutMs: CLEAR_TIMEOUT_MS,
  };
  const call = setup({
    types: {} as { events: LegReport | { type: 'to leg'; command: LegCommand } },
    actors: { leg: machine },
  }).createMachine({
    invoke: { id: 'leg', src: 'leg', input },
    on: {
      'to leg': { actions: sendTo('leg', ({ event }) => event.command) },
      '*': {
        actions: ({ event }) => (/^(agent|dtmf)\./.test(event.type) ? reports.push(event as LegReport) : undefined),
      },
    },
  });
  const actor = createActor(call, { clock });
  let state = 'dialing';
  actor.system.inspect({
    next: (inspected) => {
      if (inspected.type !== '@xstate.snapshot' || (inspected.actorRef as { id?: string }).id !== 'leg') return;
      state = nameOf((inspected.snapshot as { value?: unknown }).value);
    },
  });
  actor.start();
  const send = (command: LegCommand) => actor.send({ type: 'to leg', command });
  return {
    clock,
    reports,
    requests,
    send,
    dialog: (event: LegEvent) => sendToLeg(event),
    take(name: string) {
      const step = EVENTS[name] as Step;
      if (step.type === 'wait') clock.increment(step.forMs);
      else if (step.type === 'hangup' || step.type === 'hold') send(step);
      else sendToLeg(step);
    },
    state: () => state,
    dialogInput: () => dialogInput,
    dialogsEnded: () => ended,
    stop: () => void actor.stop(),
  };
}

function asText(command: DialogCommand): string {
  if (command.type === 'hangup') return command.cause;
  return command.type === 'hold' ? `hold ${command.isHeld}` : command.type;
}

function nameOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return String(Object.values(value as Record<string, unknown>)[0]);
}

function inWords(report: LegReport): string {
  if (report.type === 'agent.ringing') return `agent.ringing ${report.sipStatus}`;
  if (!('ending' in report)) return report.type;
  const { kind, sipStatus, hangupCause } = report.ending;
  return `${kind} ${sipStatus ?? '-'} ${hangupCause}`;
}
