import { describe, expect, it } from 'vitest';
import { createActor, fromCallback, SimulatedClock, sendTo, setup } from 'xstate';
import type { LegEvent, RemoteMedia } from '../../machines/events.ts';
import {
  type DialogCommand,
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

/** How each state of the table is reached from `dialing`. */
const PATHS = {
  dialing: [],
  ringing: ['ringing'],
  answered: ['ringing', 'answered'],
  clearing: ['ringing', 'answered', 'hangup'],
  abandoned: ['ringing', 'ringTimeout'],
  gone: ['busy'],
} as const;

/**
 * State x event: the next state, then what the call is told, then what the dialog is told. A cell that is absent
 * means: nothing happens.
 */
const TABLE: Record<keyof typeof PATHS, Partial<Record<keyof typeof EVENTS, string>>> = {
  dialing: {
    ringing: 'ringing tells agent.ringing 180',
    answered: 'answered tells agent.answered',
    busy: 'gone tells refused 486 USER_BUSY',
    timedOut: 'gone tells refused 408 RECOVERY_ON_TIMER_EXPIRE',
    bye: 'gone tells ended - NORMAL_CLEARING',
    cleared: 'gone tells ended - ORIGINATOR_CANCEL',
    lost: 'gone tells lost - NETWORK_OUT_OF_ORDER',
    hangup: 'clearing asks ORIGINATOR_CANCEL',
    ringTimeout: 'abandoned tells no-answer - NO_ANSWER asks NO_ANSWER',
  },
  ringing: {
    ringing: 'ringing tells agent.ringing 180',
    answered: 'answered tells agent.answered',
    busy: 'gone tells refused 486 USER_BUSY',
    timedOut: 'gone tells no-answer 408 NO_ANSWER',
    bye: 'gone tells ended - NORMAL_CLEARING',
    cleared: 'gone tells ended - ORIGINATOR_CANCEL',
    lost: 'gone tells lost - NETWORK_OUT_OF_ORDER',
    hangup: 'clearing asks ORIGINATOR_CANCEL',
    ringTimeout: 'abandoned tells no-answer - NO_ANSWER asks NO_ANSWER',
  },
  answered: {
    hold: 'answered asks hold true',
    media: 'answered tells agent.media',
    pressed: 'answered tells dtmf.pressed',
    busy: 'gone tells refused 486 USER_BUSY',
    timedOut: 'gone tells no-answer 408 NO_ANSWER',
    bye: 'gone tells ended - NORMAL_CLEARING',
    cleared: 'gone tells ended - ORIGINATOR_CANCEL',
    lost: 'gone tells lost - NETWORK_OUT_OF_ORDER',
    hangup: 'clearing asks ORIGINATOR_CANCEL',
  },
  clearing: {
    busy: 'gone tells refused 486 USER_BUSY',
    timedOut: 'gone tells no-answer 408 NO_ANSWER',
    bye: 'gone tells ended - NORMAL_CLEARING',
    cleared: 'gone tells ended - ORIGINATOR_CANCEL',
    lost: 'gone tells lost - NETWORK_OUT_OF_ORDER',
    clearTimeout: 'gone tells ended - ORIGINATOR_CANCEL',
    // Longer than the clear timeout, so it comes to the same.
    ringTimeout: 'gone tells ended - ORIGINATOR_CANCEL',
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

describe('the leg machine, state by event', () => {
  for (const state of Object.keys(TABLE) as (keyof typeof PATHS)[]) {
    for (const event of Object.keys(EVENTS)) {
      const cell = TABLE[state][event];
      it(`in ${state}, ${event} ${cell === undefined ? 'changes nothing' : `leads to ${cell}`}`, () => {
        const leg = startLeg();
        for (const step of PATHS[state]) leg.take(step);
        expect(leg.state()).toBe(state);
        const toldBefore = leg.told.length;
        const askedBefore = leg.asked.length;
        leg.take(event);
        const told = leg.told.slice(toldBefore).map((report) => ` tells ${inWords(report)}`);
        const asked = leg.asked.slice(askedBefore).map((cause) => ` asks ${cause}`);
        expect([leg.state(), ...told, ...asked].join('')).toBe(cell ?? state);
      });
    }
  }
});

describe('a leg', () => {
  it('passes early media on with each ringing, because a later 183 may name another port', () => {
    const leg = startLeg();
    const moved = { ...MEDIA, rtpPort: 30_000 };
    leg.dialog({ type: 'leg.ringing', sipStatus: 183, earlyMedia: MEDIA });
    leg.dialog({ type: 'leg.ringing', sipStatus: 183, earlyMedia: moved });
    expect(leg.told).toEqual([
      { type: 'agent.ringing', sipStatus: 183, earlyMedia: MEDIA },
      { type: 'agent.ringing', sipStatus: 183, earlyMedia: moved },
    ]);
  });

  it('gives its dialog what is needed to dial', () => {
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

  it('has no ring timeout once it is answered', () => {
    const leg = startLeg();
    leg.take('answered');
    leg.clock.increment(10 * RING_TIMEOUT_MS);
    expect(leg.state()).toBe('answered');
    expect(leg.asked).toEqual([]);
  });

  it('waits in clearing for the end of an answer that crossed the CANCEL, and starts no talk with it', () => {
    const leg = startLeg();
    leg.take('ringing');
    leg.take('hangup');
    leg.take('answered');
    expect(leg.state()).toBe('clearing');
    leg.take('cleared');
    expect(leg.told.map(inWords)).toEqual(['agent.ringing 180', 'ended - ORIGINATOR_CANCEL']);
  });

  it('is hung up once, with the first cause', () => {
    const leg = startLeg();
    leg.send({ type: 'hangup', cause: 'MAX_DURATION' });
    leg.send({ type: 'hangup', cause: 'NORMAL_CLEARING' });
    expect(leg.asked).toEqual(['MAX_DURATION']);
  });

  it('names the cause it was hung up with when its end is never confirmed', () => {
    const leg = startLeg();
    leg.take('answered');
    leg.send({ type: 'hangup', cause: 'MAX_DURATION' });
    leg.clock.increment(CLEAR_TIMEOUT_MS);
    expect(leg.told.at(-1)).toMatchObject({ type: 'agent.gone', ending: { hangupCause: 'MAX_DURATION' } });
  });

  it('is lost when its dialog cannot even begin', () => {
    const leg = startLeg({ broken: true });
    expect(leg.told.map(inWords)).toEqual(['lost - NORMAL_TEMPORARY_FAILURE']);
    expect(leg.state()).toBe('gone');
  });

  for (const path of [['busy'], ['answered', 'bye'], ['hangup', 'clearTimeout'], ['ringTimeout', 'answered', 'bye']]) {
    it(`says gone exactly once after ${path.join(', ')}`, () => {
      const leg = startLeg();
      for (const step of path) leg.take(step);
      for (const step of ['bye', 'busy', 'lost', 'clearTimeout']) leg.take(step);
      expect(leg.told.filter(({ type }) => type === 'agent.gone')).toHaveLength(1);
    });
  }

  it('ends its dialog when it is stopped from outside', () => {
    const leg = startLeg();
    leg.take('answered');
    leg.stop();
    expect(leg.dialogsEnded()).toBe(1);
  });
});

describe('a re-INVITE that met one of the peer', () => {
  it('is sent again after three seconds, while the leg is up', () => {
    const leg = startLeg();
    for (const name of ['ringing', 'answered', 'hold', 'glare']) leg.take(name);
    leg.clock.increment(2_999);
    expect(leg.asked).toEqual(['hold true']);
    leg.clock.increment(1);
    expect(leg.asked).toEqual(['hold true', 'offer-again']);
  });

  it('is not sent again by a leg that has ended meanwhile', () => {
    const leg = startLeg();
    for (const name of ['ringing', 'answered', 'glare', 'bye']) leg.take(name);
    leg.clock.increment(10_000);
    expect(leg.asked).toEqual([]);
  });
});

/** One leg below a call that writes down what it is told. */
function startLeg({ broken = false }: { broken?: boolean } = {}) {
  const clock = new SimulatedClock();
  const told: LegReport[] = [];
  const asked: string[] = [];
  let dialogInput: unknown;
  let tellLeg: (event: LegEvent) => void = () => undefined;
  let ended = 0;
  const machine = legMachine.provide({
    actors: {
      dialog: fromCallback(({ input, receive, sendBack }) => {
        if (broken) throw new Error('no dialog');
        dialogInput = input;
        tellLeg = sendBack;
        receive((command) => asked.push(asText(command as DialogCommand)));
        return () => {
          ended += 1;
        };
      }) as never,
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
      '*': { actions: ({ event }) => (/^(agent|dtmf)\./.test(event.type) ? told.push(event as LegReport) : undefined) },
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
    told,
    asked,
    send,
    dialog: (event: LegEvent) => tellLeg(event),
    take(name: string) {
      const step = EVENTS[name] as Step;
      if (step.type === 'wait') clock.increment(step.forMs);
      else if (step.type === 'hangup' || step.type === 'hold') send(step);
      else tellLeg(step);
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
