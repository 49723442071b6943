import { createActor, fromCallback, fromPromise, SimulatedClock } from 'xstate';
import { callMachine } from '../../machines/call.machine.ts';
import type {
  CallEvent,
  CallMove,
  Funding,
  MediaCommand,
  SettleInput,
  TranscriptCommand,
} from '../../machines/call-events.ts';
import type { CallSegment, LegEvent, LegId, LegName, RemoteMedia } from '../../machines/events.ts';
import { type DialogCommand, type DialogInput, type LegEnding, legMachine } from '../../machines/leg.machine.ts';

export const AGENT_MEDIA: RemoteMedia = remoteMedia(20_000);
export const CUSTOMER_MEDIA: RemoteMedia = remoteMedia(30_000);
export const EARLY_MEDIA: RemoteMedia = remoteMedia(31_000);

/** Events that lead from `preparing` to each state. */
export const PATHS = {
  preparing: [],
  ringingAgent: ['media.opened'],
  ringingCustomer: ['media.opened', 'agent.answered'],
  announcing: ['media.opened', 'agent.answered'],
  bridged: ['media.opened', 'agent.answered', 'customer.answered'],
  clearing: ['media.opened', 'agent.answered', 'customer.answered', 'hangup.api'],
  finishing: ['media.opened', 'agent.answered', 'customer.answered', 'hangup.api', 'agent.bye', 'customer.bye'],
} as const;

export const EVENTS: Record<string, CallEvent> = {
  'media.opened': {
    type: 'media.opened',
    local: { agent: { host: '127.0.0.1', rtpPort: 10_000 }, customer: { host: '127.0.0.1', rtpPort: 10_002 } },
  },
  'media.unavailable': { type: 'media.unavailable', detail: 'no port is free' },
  'media.lost': { type: 'media.lost', detail: 'the worker died' },
  'media.finished': { type: 'media.finished', report: { quality: null, recording: null } },
  'agent.ringing': { type: 'agent.ringing', sipStatus: 180, earlyMedia: null },
  'agent.answered': { type: 'agent.answered', media: AGENT_MEDIA },
  'agent.media': { type: 'agent.media', media: AGENT_MEDIA },
  'agent.noanswer': gone('agent', 'no-answer', { hangupCause: 'NO_ANSWER' }),
  'agent.busy': gone('agent', 'refused', { sipStatus: 486, hangupCause: 'USER_BUSY' }),
  'agent.decline': gone('agent', 'refused', { sipStatus: 603, hangupCause: 'CALL_REJECTED' }),
  'agent.notfound': gone('agent', 'refused', { sipStatus: 404, hangupCause: 'UNALLOCATED_NUMBER' }),
  'agent.unreachable': gone('agent', 'refused', { sipStatus: 503, hangupCause: 'NORMAL_TEMPORARY_FAILURE' }),
  'agent.bye': gone('agent', 'ended', { hangupCause: 'NORMAL_CLEARING' }),
  'agent.lost': gone('agent', 'lost', { hangupCause: 'NETWORK_OUT_OF_ORDER' }),
  'customer.ringing': { type: 'customer.ringing', sipStatus: 180, earlyMedia: null },
  'customer.early': { type: 'customer.ringing', sipStatus: 183, earlyMedia: EARLY_MEDIA },
  'customer.answered': { type: 'customer.answered', media: CUSTOMER_MEDIA },
  'customer.media': { type: 'customer.media', media: CUSTOMER_MEDIA },
  'customer.noanswer': gone('customer', 'no-answer', { hangupCause: 'NO_ANSWER' }),
  'customer.busy': gone('customer', 'refused', { sipStatus: 486, hangupCause: 'USER_BUSY' }),
  'customer.incomplete': gone('customer', 'refused', { sipStatus: 484, hangupCause: 'INVALID_NUMBER_FORMAT' }),
  'customer.480': gone('customer', 'refused', { sipStatus: 480, hangupCause: 'NO_USER_RESPONSE' }),
  'customer.bye': gone('customer', 'ended', { hangupCause: 'NORMAL_CLEARING' }),
  'customer.lost': gone('customer', 'lost', { hangupCause: 'NETWORK_OUT_OF_ORDER' }),
  'rtp.timeout': { type: 'rtp.timeout', leg: 'customer', silentForMs: 20_000 },
  'rtp.started': { type: 'rtp.started', leg: 'agent' },
  'dtmf.pressed': { type: 'dtmf.pressed', leg: 'agent', digit: '5', durationMs: 100 },
  'machine.human': { type: 'machine.detected', leg: 'customer', result: 'human', afterMs: 900 },
  'machine.machine': { type: 'machine.detected', leg: 'customer', result: 'machine', afterMs: 2400 },
  'recording.started': { type: 'recording.started', recordingId: 'rec-1' },
  'recording.failed': { type: 'recording.failed', detail: 'disk full' },
  'tap.overrun': { type: 'tap.overrun', leg: 'agent' },
  'transcript.started': { type: 'transcript.started' },
  'transcript.final': { type: 'transcript.final', segment: segment('hello') },
  'transcript.failed': { type: 'transcript.failed', reason: 'OVERLOADED' },
  'transcript.ended': { type: 'transcript.ended' },
  'announcement.started': { type: 'speech.started', speech: 'announcement' },
  'announcement.finished': { type: 'speech.finished', speech: 'announcement' },
  'announcement.failed': { type: 'speech.failed', speech: 'announcement', detail: 'no engine' },
  'whisper.started': { type: 'speech.started', speech: 'whisper' },
  'whisper.finished': { type: 'speech.finished', speech: 'whisper' },
  'whisper.failed': { type: 'speech.failed', speech: 'whisper', detail: 'no engine' },
  'hangup.api': { type: 'hangup.requested', reason: 'api' },
  'hangup.shutdown': { type: 'hangup.requested', reason: 'shutdown' },
};

export function startCall(
  options: {
    agentRingTimeoutMs?: number;
    customerRingTimeoutMs?: number;
    maxDurationMs?: number;
    fundedForMs?: number;
    record?: boolean;
    transcribe?: boolean;
    announce?: boolean;
    whisper?: boolean;
    onMachine?: 'continue' | 'hangup';
    /** `never` does not answer. */
    funding?: (Funding | Error | 'never')[];
    /** `never` does not resolve; a number is the count of failures before success. */
    settle?: 'never' | number;
    brokenDialog?: boolean;
  } = {},
) {
  const clock = new SimulatedClock();
  const mediaCommands: MediaCommand[] = [];
  const dialed: LegId[] = [];
  const hangups: { leg: LegId; cause: string }[] = [];
  const holds: string[] = [];
  const settled: SettleInput[] = [];
  const moves: CallMove[] = [];
  const dialogs = new Map<LegId, (event: LegEvent) => void>();
  const transcriptCommands: TranscriptCommand[] = [];
  let transcripts = 0;
  let clearings = 0;
  let fundingAsked = 0;
  let settleFailuresLeft = typeof options.settle === 'number' ? options.settle : 0;

  const machine = callMachine.provide({
    actors: {
      media: fromCallback<MediaCommand, { callId: string }>(({ receive }) => {
        receive((command) => mediaCommands.push(command));
      }),
      leg: legMachine.provide({
        actors: {
          dialog: fromCallback<DialogCommand, DialogInput>(({ input, receive, sendBack }) => {
            if (options.brokenDialog) throw new Error('no dialog');
            dialed.push(input.leg);
            dialogs.set(input.leg, sendBack);
            receive((command) => {
              if (command.type === 'hangup') hangups.push({ leg: input.leg, cause: command.cause });
              if (command.type === 'hold') holds.push(`${input.leg} ${command.isHeld}`);
            });
          }),
        },
      }),
      transcript: fromCallback<TranscriptCommand, { callId: string }>(({ receive }) => {
        transcripts += 1;
        receive((command) => transcriptCommands.push(command));
        return () => {
          transcripts -= 1;
        };
      }),
      extendFunding: fromPromise<Funding, { callId: string }>(async () => {
        const answer = options.funding?.[fundingAsked] ?? { fundedForMs: 60_000 };
        fundingAsked += 1;
        if (answer instanceof Error) throw answer;
        return answer === 'never' ? await new Promise<never>(() => {}) : answer;
      }),
      settle: fromPromise<void, SettleInput>(async ({ input }) => {
        settled.push(input);
        if (options.settle === 'never') await new Promise(() => {});
        if (settleFailuresLeft > 0) {
          settleFailuresLeft -= 1;
          throw new Error('storage away');
        }
      }),
    },
  });
  const actor = createActor(machine, {
    clock,
    input: {
      callId: 'call-1',
      agentRingTimeoutMs: options.agentRingTimeoutMs ?? 30_000,
      customerRingTimeoutMs: options.customerRingTimeoutMs ?? 45_000,
      maxDurationMs: options.maxDurationMs ?? 3_600_000,
      transcribe: options.transcribe ?? false,
      record: options.record ?? false,
      announce: options.announce ?? false,
      whisper: options.whisper ?? false,
      onMachine: options.onMachine ?? null,
      fundedForMs: options.fundedForMs ?? 600_000,
    },
  });
  actor.on('moved', ({ move }) => moves.push(move));
  actor.on('clearing', () => {
    clearings += 1;
  });
  actor.start();
  return {
    actor,
    clock,
    mediaCommands,
    dialed,
    hangups,
    holds,
    settled,
    moves,
    transcriptCommands,
    get transcripts() {
      return transcripts;
    },
    get clearings() {
      return clearings;
    },
    get fundingAsked() {
      return fundingAsked;
    },
    send: (event: CallEvent) => actor.send(event),
    /** Sends an event the way it really arrives: reports about the peer pass through the leg. */
    receive: (name: string) => {
      const event = EVENTS[name] as CallEvent;
      const [leg, what] = event.type.split('.') as [LegName, string];
      const dialog = dialogs.get(leg);
      if (dialog && what !== 'gone') dialog({ sipStatus: 200, ...event, type: `leg.${what}` } as LegEvent);
      else actor.send(event);
    },
    dialog: (leg: LegId) => dialogs.get(leg)!,
    /** Lets pending promises settle. */
    quiet: () => new Promise<void>((resolve) => setImmediate(resolve)),
    state: () => innermostState(actor.getSnapshot().value),
    outcome: () => {
      const outcome = actor.getSnapshot().context.outcome;
      if (outcome === null) return null;
      const { state, terminalEvent, hangupCause, leg, error } = outcome;
      return `${state} ${terminalEvent} ${hangupCause} ${leg ?? '-'} ${error ?? '-'}`;
    },
  };
}

/** Name of the documented state: below `active` and `live`, above the funding of a bridge. */
export function innermostState(value: unknown): string {
  if (typeof value === 'string') return value;
  const [name, child] = Object.entries(value as Record<string, unknown>)[0] ?? ['', ''];
  return name === 'active' || name === 'live' ? innermostState(child) : name;
}

export function gone(leg: LegName, kind: LegEnding['kind'], ending: Partial<LegEnding>): CallEvent {
  return {
    type: `${leg}.gone`,
    ending: { kind, sipStatus: null, hangupCause: 'NORMAL_CLEARING', detail: 'as told', ...ending },
  };
}

export function segment(text: string): CallSegment {
  return { leg: 'agent', utteranceId: 1, text, language: 'en', startMs: 0, endMs: 900, confidence: 0.9, words: [] };
}

export function remoteMedia(rtpPort: number): RemoteMedia {
  return {
    host: '127.0.0.1',
    rtpPort,
    rtcpPort: rtpPort + 1,
    codec: 'PCMU',
    payloadType: 0,
    telephoneEventPayloadType: 101,
    direction: 'sendrecv',
  };
}
