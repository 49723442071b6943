import { describe, expect, it } from 'vitest';
import { createActor, fromCallback, fromPromise, SimulatedClock } from 'xstate';
import { closeOf, endingError, type SttMessage, type TranscriptionMessage } from '../../machines/stt-messages.ts';
import { sttSessionMachine } from '../../machines/stt-session.machine.ts';
import type {
  Bill,
  BillInput,
  ConcludeInput,
  Conclusion,
  PipelineCommand,
  PipelineInput,
  RefinedText,
  RefineInput,
  SttSessionEvent,
  SttSettings,
  TalkContext,
} from '../../machines/stt-session-events.ts';
import type { RecognisedWord, UtteranceSummary } from '../../machines/utterances.ts';

const SETTINGS: SttSettings = {
  languages: ['en'],
  encoding: 'linear',
  sampleRateHz: 16_000,
  utteranceEndMs: 1_000,
  isContinuous: true,
  interimEveryMs: 300,
  enhancement: 'off',
  diarize: false,
  minSpeakers: null,
  maxSpeakers: null,
  removeFillers: false,
};
const TALK: TalkContext = { general: [], text: 'A call about orders.', terms: ['Tandem'] };
const SUMMARY: UtteranceSummary = { channel: 0, startMs: 500, endMs: 2_500, speechMs: 1_800, snrDb: 21.26 };

/** Events that lead to each state. */
const PATHS = {
  established: [],
  starting: ['start'],
  listening: ['start', 'opened'],
  speaking: ['start', 'opened', 'speech'],
  stopping: ['start', 'opened', 'stop'],
  refining: ['start.context', 'opened', 'recognised'],
  billing: ['start', 'opened', 'recognised'],
  concluding: ['end.shutdown'],
} as const satisfies Record<string, readonly string[]>;

const EVENTS: Record<string, SttSessionEvent> = {
  start: { type: 'start.requested', settings: SETTINGS, talk: null },
  'start.context': { type: 'start.requested', settings: SETTINGS, talk: TALK },
  config: { type: 'config.requested', change: { utteranceEndMs: 2_000 } },
  stop: { type: 'stop.requested' },
  alive: { type: 'client.alive' },
  opened: { type: 'pipeline.opened', ignoresTerms: false },
  'refused.language': { type: 'pipeline.refused', code: 'unsupported_language', message: 'No engine knows it.' },
  'refused.shutdown': { type: 'pipeline.refused', code: 'SHUTTING_DOWN', message: 'Shutting down.' },
  configured: {
    type: 'pipeline.configured',
    settings: { ...SETTINGS, utteranceEndMs: 2_000 },
    ignoresTerms: false,
  },
  unconfigured: { type: 'pipeline.config_refused', code: 'unsupported_language', message: 'No engine knows it.' },
  speech: { type: 'speech.started', utteranceId: 1, atMs: 480 },
  hypothesis: {
    type: 'utterance.hypothesis',
    utteranceId: 1,
    channel: 0,
    text: 'go for',
    words: [word('go', 500), word('for', 900)],
    lagMs: 40.4,
  },
  recognised: recognised(1, 'go forward'),
  nothing: recognised(1, ' '),
  short: unusable('speech_end_too_short', null),
  hallucination: unusable('hallucination_rejected', 'thank you thank you'),
  lagging: { type: 'recognition.lagging', lagMs: 4_000, isShedding: true },
  analysed: { type: 'pipeline.analysed', snrDb: 20 },
  'recognition.ended': { type: 'recognition.ended' },
  overloaded: { type: 'recognition.overloaded', lagMs: 31_000 },
  failed: { type: 'recognition.failed', code: 'STT_UPSTREAM_RATE_LIMIT', message: 'Limited.', retryAfterS: 2.2 },
  impaired: { type: 'recognition.impaired', code: 'STT_UPSTREAM_RATE_LIMIT', message: 'Limited.' },
  lost: { type: 'listening.lost', detail: 'the worker died' },
  'end.disconnected': { type: 'end.requested', ending: { kind: 'disconnected' } },
  'end.credentials': { type: 'end.requested', ending: { kind: 'credentials' } },
  'end.shutdown': { type: 'end.requested', ending: { kind: 'shutdown' } },
  'end.overloaded': { type: 'end.requested', ending: { kind: 'overloaded' } },
};

const ENDS = {
  'end.disconnected': 'concluding',
  'end.credentials': 'concluding error:AUTH_FAILED',
  'end.shutdown': 'concluding error:SHUTTING_DOWN',
  'end.overloaded': 'concluding error:overloaded',
};
const NO_SECOND_START = { start: 'same error:invalid_state', 'start.context': 'same error:invalid_state' };
const IN_SESSION = {
  ...ENDS,
  ...NO_SECOND_START,
  configured: 'same config_updated',
  unconfigured: 'same error:unsupported_language',
  overloaded: 'concluding error:overloaded',
  failed: 'concluding error:STT_UPSTREAM_RATE_LIMIT',
  impaired: 'same error:STT_UPSTREAM_RATE_LIMIT',
  lost: 'concluding error:STT_UPSTREAM_UNAVAILABLE',
};
const STARTED = {
  ...IN_SESSION,
  'end.shutdown': 'stopping',
  config: 'same',
  'recognition.ended': 'concluding',
};

/** State x event: the next state and the emitted messages. */
const TABLE: Record<keyof typeof PATHS, Partial<Record<keyof typeof EVENTS, string>>> = {
  established: {
    ...ENDS,
    start: 'starting',
    'start.context': 'starting',
    config: 'same error:invalid_state',
    stop: 'concluding',
  },
  starting: {
    ...IN_SESSION,
    config: 'same error:invalid_state',
    stop: 'concluding',
    opened: 'listening session_started',
    'refused.language': 'established error:unsupported_language',
    'refused.shutdown': 'concluding error:SHUTTING_DOWN',
    // An unopened pipeline emits none of these, but the machine would forward them.
    hypothesis: 'same interim',
    recognised: 'starting+billing',
    nothing: 'same final:speech_end_no_result',
    short: 'same final:speech_end_too_short',
    hallucination: 'same final:hallucination_rejected',
    'recognition.ended': 'concluding',
  },
  listening: {
    ...STARTED,
    stop: 'stopping',
    speech: 'speaking speech_started',
    hypothesis: 'same interim',
    recognised: 'listening+billing',
    nothing: 'same final:speech_end_no_result',
    short: 'same final:speech_end_too_short',
    hallucination: 'same final:hallucination_rejected',
  },
  speaking: {
    ...STARTED,
    stop: 'stopping',
    speech: 'same speech_started',
    hypothesis: 'same interim',
    recognised: 'listening+billing',
    nothing: 'listening final:speech_end_no_result',
    short: 'listening final:speech_end_too_short',
    hallucination: 'listening final:hallucination_rejected',
  },
  stopping: {
    ...IN_SESSION,
    'end.shutdown': 'same',
    config: 'same error:invalid_state',
    speech: 'same speech_started',
    hypothesis: 'same interim',
    recognised: 'stopping+billing',
    nothing: 'same final:speech_end_no_result',
    short: 'same final:speech_end_too_short',
    hallucination: 'same final:hallucination_rejected',
    'recognition.ended': 'concluding',
  },
  refining: {
    ...STARTED,
    'recognition.ended': 'same',
    'end.shutdown': 'stopping+refining',
    stop: 'stopping+refining',
    speech: 'speaking+refining speech_started',
    hypothesis: 'same interim',
    recognised: 'same first',
  },
  billing: {
    ...STARTED,
    'recognition.ended': 'same',
    'end.shutdown': 'stopping+billing',
    stop: 'stopping+billing',
    speech: 'speaking+billing speech_started',
    hypothesis: 'same interim',
  },
  concluding: {},
};

describe('live session machine, state by event', () => {
  for (const state of Object.keys(TABLE) as (keyof typeof PATHS)[]) {
    for (const event of Object.keys(EVENTS)) {
      const cell = TABLE[state][event] ?? 'same';
      it(`in ${state}, ${event} leads to ${cell}`, () => {
        const session = startSession();
        for (const step of PATHS[state]) session.receive(step);
        const before = session.state();
        expect(before.split('+').pop()).toBe(state);
        const emittedBefore = session.emitted.length;
        session.receive(event);
        const [after = '', ...messages] = cell.split(' ');
        expect(session.state()).toBe(after === 'same' ? before : after);
        expect(session.emitted.slice(emittedBefore).map(nameOf)).toEqual(messages);
      });
    }
  }
});

describe('live session', () => {
  it('returns the settings of its start', () => {
    const session = startSession();
    session.send({
      type: 'start.requested',
      settings: { ...SETTINGS, diarize: true, removeFillers: true },
      talk: TALK,
    });
    expect(session.pipeline?.terms).toEqual(['Tandem']);
    session.receive('opened');
    expect(session.emitted).toEqual([
      {
        type: 'session_started',
        session_id: 'session-1',
        diarize: true,
        llm_refinement: true,
        warning_codes: [],
        config: {
          languages: ['en'],
          encoding: 'linear',
          sample_rate: 16_000,
          utterance_end_ms: 1_000,
          continuous_mode: true,
          interim_results_frequency: 300,
          audio_enhancement: 'off',
          diarize: true,
          min_speakers: null,
          max_speakers: null,
          remove_fillers: true,
        },
      },
    ]);
  });

  it('warns of terms that the model ignores', () => {
    const session = startSession();
    session.receive('start.context');
    session.send({ type: 'pipeline.opened', ignoresTerms: true });
    expect(session.emitted).toMatchObject([{ type: 'session_started', warning_codes: ['keywords_not_boosted'] }]);
  });

  it('drops context, terms and filler removal on a plan without refinement, with a warning', async () => {
    const session = startSession({ mayRefine: false });
    session.send({ type: 'start.requested', settings: { ...SETTINGS, removeFillers: true }, talk: TALK });
    session.receive('opened');
    expect(session.pipeline?.terms).toEqual([]);
    expect(session.emitted).toMatchObject([
      {
        llm_refinement: false,
        warning_codes: ['llm_refinement_not_in_plan'],
        config: { remove_fillers: false },
      },
    ]);
    session.receive('recognised');
    await session.billed();
    expect(session.transcriptions()).toMatchObject([{ speech_final: true, llm_applied: false, llm_reason: null }]);
  });

  it('can start again after an unsupported language', () => {
    const session = startSession();
    for (const step of ['start.context', 'refused.language', 'start', 'opened']) session.receive(step);
    expect(session.emitted.map(nameOf)).toEqual(['error:unsupported_language', 'session_started']);
    expect(session.emitted.at(-1)).toMatchObject({ llm_refinement: false });
  });

  it('emits interim transcripts', () => {
    const session = startedSession();
    session.receive('hypothesis');
    expect(session.transcriptions()).toEqual([
      {
        type: 'transcription',
        text: 'go for',
        is_final: false,
        speech_final: false,
        sentence_id: 'sentence-1',
        language: null,
        start: 0.5,
        end: 1.2,
        words: [
          { word: 'go', start: 0.5, end: 0.8, confidence: 0.9 },
          { word: 'for', start: 0.9, end: 1.2, confidence: 0.9 },
        ],
        snr_db: null,
        processing_mode: 'interim',
        llm_applied: false,
        llm_reason: null,
        llm_latency_ms: null,
        tentative: false,
        tentative_reason: null,
        lag_ms: 40,
      },
    ]);
  });

  it('emits one final per utterance without context, after charging it', async () => {
    const session = startedSession();
    session.receive('recognised');
    expect(session.transcriptions()).toEqual([]);
    expect(session.bills).toEqual([{ sessionId: 'session-1', utteranceId: 1, durationMs: 2_000, diarized: false }]);
    await session.billed();
    expect(session.transcriptions()).toMatchObject([
      {
        text: 'go forward',
        is_final: true,
        speech_final: true,
        processing_mode: 'speech_end',
        language: 'en',
        start: 0.5,
        end: 2.5,
        snr_db: 21.3,
        lag_ms: 120,
      },
    ]);
    expect(session.transcriptions()[0]).not.toHaveProperty('speakers');
  });

  it('reports speakers and replaced words', async () => {
    const session = startSession();
    session.send({ type: 'start.requested', settings: { ...SETTINGS, diarize: true }, talk: null });
    session.receive('opened');
    const words = [
      { ...word('call', 500), speaker: 'speaker_1' },
      { ...word('Tandem', 900), speaker: 'speaker_2', original: 'tan dem', confidence: null },
      { ...word('now', 1_200), speaker: 'speaker_1' },
    ];
    session.send(recognised(1, 'call Tandem now', words));
    expect(session.bills[0]?.diarized).toBe(true);
    await session.billed();
    expect(session.transcriptions()[0]).toMatchObject({ speakers: ['speaker_1', 'speaker_2'] });
    expect(session.transcriptions()[0]?.words[1]).toEqual({
      word: 'Tandem',
      start: 0.9,
      end: 1.2,
      speaker: 'speaker_2',
      boosted: true,
      original: 'tan dem',
    });
  });

  it('charges no speaker labels of an utterance that began before they were switched on', async () => {
    const session = startedSession();
    session.receive('speech');
    session.send({ type: 'pipeline.configured', settings: { ...SETTINGS, diarize: true }, ignoresTerms: false });
    session.receive('recognised');
    expect(session.bills).toMatchObject([{ diarized: false }]);
    await session.billed();
    expect(session.transcriptions()[0]).not.toHaveProperty('speakers');
  });

  it('charges the speaker labels of an utterance during which they were switched off', async () => {
    const session = startSession();
    session.send({ type: 'start.requested', settings: { ...SETTINGS, diarize: true }, talk: null });
    for (const step of ['opened', 'speech']) session.receive(step);
    session.send({ type: 'pipeline.configured', settings: SETTINGS, ignoresTerms: false });
    session.send(recognised(1, 'go', [{ ...word('go', 500), speaker: 'speaker_1' }]));
    expect(session.bills).toMatchObject([{ diarized: true }]);
    await session.billed();
    expect(session.transcriptions()[0]).toMatchObject({ speakers: ['speaker_1'] });
  });

  it('emits two finals per sentence with context, the second refined and charged', async () => {
    const session = startedSession('start.context');
    session.receive('recognised');
    expect(session.transcriptions()).toMatchObject([{ text: 'go forward', is_final: true, speech_final: false }]);
    expect(session.bills).toEqual([]);
    await session.refined({ text: 'Go forward.', llmApplied: true, llmReason: null, llmLatencyMs: 412.6 });
    expect(session.bills).toHaveLength(1);
    await session.billed();
    expect(session.transcriptions()[1]).toMatchObject({
      text: 'Go forward.',
      is_final: true,
      speech_final: true,
      sentence_id: 'sentence-1',
      llm_applied: true,
      llm_reason: null,
      llm_latency_ms: 413,
    });
  });

  it('repeats the original when refinement fails or times out', async () => {
    for (const lose of [(session: Session) => session.failRefinement(), (session: Session) => session.passed(1_000)]) {
      const session = startedSession('start.context');
      session.receive('recognised');
      await lose(session);
      await session.billed();
      expect(session.transcriptions()[1]).toMatchObject({
        text: 'go forward',
        speech_final: true,
        llm_applied: false,
        llm_reason: 'llm_unavailable',
      });
    }
  });

  it('emits canonical finals in the order of speech, each refined and charged separately', async () => {
    const session = startedSession('start.context');
    session.send(recognised(1, 'one'));
    session.send(recognised(2, 'two'));
    session.send({ ...unusable('low_snr_dropped', null), utteranceId: 3 });
    expect(session.transcriptions().map(({ text }) => text)).toEqual(['one', 'two']);
    for (const text of ['One.', 'Two.']) {
      await session.refined({ text, llmApplied: true, llmReason: null, llmLatencyMs: 300 });
      await session.billed();
    }
    const canonical = session.transcriptions().filter(({ speech_final }) => speech_final);
    expect(canonical.map(({ text, processing_mode }) => text || processing_mode)).toEqual([
      'One.',
      'Two.',
      'low_snr_dropped',
    ]);
    expect(session.bills.map(({ utteranceId }) => utteranceId)).toEqual([1, 2]);
  });

  it('never charges or refines an utterance without usable text', () => {
    const session = startedSession('start.context');
    for (const reason of ['speech_end_no_result', 'speech_end_too_short', 'low_snr_dropped'] as const) {
      session.send(unusable(reason, null));
      expect(session.transcriptions().at(-1)).toMatchObject({
        text: '',
        words: [],
        is_final: true,
        speech_final: true,
        processing_mode: reason,
        tentative: false,
      });
    }
    expect(session.bills).toEqual([]);
    expect(session.refinements).toEqual([]);
  });

  it('replaces a hallucination by the last interim, marked tentative', () => {
    const session = startedSession();
    session.receive('hypothesis');
    session.receive('hallucination');
    expect(session.transcriptions().at(-1)).toMatchObject({
      text: 'go for',
      processing_mode: 'hallucination_rejected',
      tentative: true,
      tentative_reason: 'hallucination_rejected',
      speech_final: true,
    });
    expect(session.transcriptions().at(-1)?.words).toHaveLength(2);
    session.send({ ...unusable('hallucination_rejected', null), utteranceId: 2 });
    expect(session.transcriptions().at(-1)).toMatchObject({ text: '', tentative: false, tentative_reason: null });
    expect(session.bills).toEqual([]);
    session.receive('end.disconnected');
    expect(session.concludes).toMatchObject([{ transcript: '' }]);
  });

  it('ends after the first final without continuous mode, but not after a cough', async () => {
    const session = startSession();
    session.send({ type: 'start.requested', settings: { ...SETTINGS, isContinuous: false }, talk: null });
    session.receive('opened');
    session.receive('short');
    session.receive('hallucination');
    expect(session.state()).toBe('listening');
    session.send(recognised(2, 'hello'));
    session.send(recognised(3, 'not wanted'));
    await session.billed();
    await session.concluded();
    expect(session.emitted.map(nameOf)).toEqual([
      'session_started',
      'final:speech_end_too_short',
      'final:hallucination_rejected',
      'final:speech_end',
      'billing_summary',
      'session_stopped',
      'connection_closed',
    ]);
    expect(session.closed).toEqual({ type: 'closed', code: 1000, reason: 'session stopped' });
  });

  it('waits for a final with text when continuous mode is switched off during the session', async () => {
    const session = startedSession();
    session.receive('recognised');
    await session.billed();
    session.send({ type: 'pipeline.configured', settings: { ...SETTINGS, isContinuous: false }, ignoresTerms: false });
    session.receive('short');
    expect(session.state()).toBe('listening');
    session.send(recognised(2, 'hello'));
    await session.billed();
    expect(session.concludes).toMatchObject([{ ending: { kind: 'stopped' }, transcript: 'go forward hello' }]);
  });

  it('joins Chinese sentences without a space in the transcript', async () => {
    const session = startedSession();
    session.send(recognised(1, '今天天气很好。'));
    await session.billed();
    session.send(recognised(2, '我们走吧'));
    session.receive('stop');
    session.receive('recognition.ended');
    await session.billed();
    expect(session.concludes).toMatchObject([{ transcript: '今天天气很好。我们走吧' }]);
  });

  it('emits everything before the stop, then the summary', async () => {
    const session = startedSession();
    for (const step of ['speech', 'stop', 'recognised', 'analysed', 'recognition.ended']) session.receive(step);
    expect(session.commands).toEqual([{ type: 'finish' }]);
    expect(session.state()).toBe('stopping+billing');
    await session.billed(123_456_789n);
    expect(session.concludes).toEqual([
      { sessionId: 'session-1', ending: { kind: 'stopped' }, transcript: 'go forward', language: 'en', snrDb: 20 },
    ]);
    await session.concluded({ receivedMs: 3_200 });
    expect(session.emitted.slice(-3)).toEqual([
      {
        type: 'billing_summary',
        total_duration_seconds: 2,
        client_estimated_seconds: 3.2,
        amount: 0.123456789,
        currency: 'USD',
      },
      { type: 'session_stopped' },
      { type: 'connection_closed', code: 1000, reason: 'session stopped' },
    ]);
    expect(session.actor.getSnapshot().status).toBe('done');
  });

  it('forwards each configuration change, and reports its result', () => {
    const session = startedSession();
    for (const step of ['config', 'config', 'configured', 'unconfigured']) session.receive(step);
    expect(session.commands).toEqual([
      { type: 'configure', change: { utteranceEndMs: 2_000 } },
      { type: 'configure', change: { utteranceEndMs: 2_000 } },
    ]);
    expect(session.emitted.slice(1)).toMatchObject([
      { type: 'config_updated', config: { utterance_end_ms: 2_000, languages: ['en'] } },
      { type: 'error', code: 'unsupported_language' },
    ]);
    expect(session.actor.getSnapshot().context.settings?.utteranceEndMs).toBe(2_000);
  });
});

describe('failing live session', () => {
  it('withholds a final that the wallet does not cover, with a nested error', async () => {
    const session = startedSession();
    session.receive('recognised');
    const details = { required: 1, available: 0, shortfall: 1 };
    await session.answerBill({ outcome: 'insufficient', message: 'Top it up.', details });
    await session.concluded();
    expect(session.transcriptions()).toEqual([]);
    expect(session.emitted.slice(1).map(nameOf)).toEqual([
      'error:INSUFFICIENT_CREDITS',
      'billing_summary',
      'connection_closed',
    ]);
    expect(session.emitted[1]).toEqual({
      type: 'error',
      error: { code: 'INSUFFICIENT_CREDITS', message: 'Top it up.', details },
    });
    expect(session.closed).toMatchObject({ code: 1008 });
  });

  it('retries charging while storage is away, and gives up after five attempts without the final', async () => {
    const session = startedSession();
    session.receive('recognised');
    for (let failure = 1; failure <= 4; failure += 1) {
      await session.failBill();
      expect(session.state()).toBe('listening+unbilled');
      await session.passed(250 * 2 ** failure);
    }
    expect(session.bills).toHaveLength(5);
    expect(new Set(session.bills.map((bill) => JSON.stringify(bill))).size).toBe(1);
    await session.passed(5_000);
    expect(session.state()).toBe('listening+unbilled');
    await session.passed(8_000);
    expect(session.emitted.map(nameOf)).toEqual(['session_started', 'error:STORAGE_UNAVAILABLE']);
    await session.concluded();
    expect(session.closed).toMatchObject({ code: 1011 });
  });

  it('emits the final once storage returns', async () => {
    const session = startedSession();
    session.receive('recognised');
    await session.failBill();
    await session.passed(500);
    await session.billed();
    expect(session.transcriptions()).toHaveLength(1);
    expect(session.state()).toBe('listening');
  });

  it('reports when to retry', async () => {
    const session = startedSession();
    session.receive('failed');
    expect(session.emitted.at(-1)).toMatchObject({ code: 'STT_UPSTREAM_RATE_LIMIT', retry_after: 3 });
    await session.concluded();
    expect(session.closed).toMatchObject({ code: 1011 });
  });

  it('asks for a retry when the recognisers are fully loaded', () => {
    const ending = { kind: 'failed', code: 'STT_OVERLOADED', message: 'They are fully loaded.' } as const;
    expect(endingError(ending)).toMatchObject({ code: 'STT_OVERLOADED', retry_after: 5 });
    expect(closeOf(ending)).toEqual({ code: 1013, reason: 'STT_OVERLOADED' });
  });

  const CLOSES = {
    'end.credentials': 1008,
    'end.overloaded': 1013,
    overloaded: 1013,
    lost: 1011,
  };
  for (const [event, code] of Object.entries(CLOSES)) {
    it(`closes with ${code} on ${event}, after error and summary`, async () => {
      const session = startedSession();
      session.receive(event);
      expect(session.closed).toBeNull();
      await session.concluded();
      expect(session.emitted.slice(2).map(nameOf)).toEqual(['billing_summary', 'connection_closed']);
      expect(session.closed).toMatchObject({ code });
    });
  }

  it('emits remaining finals on shutdown, and closes with 1012', async () => {
    const session = startedSession();
    for (const step of ['speech', 'end.shutdown']) session.receive(step);
    expect([session.state(), session.commands.at(-1)]).toEqual(['stopping', { type: 'finish' }]);
    for (const step of ['recognised', 'recognition.ended']) session.receive(step);
    await session.billed();
    expect(session.transcriptions().at(-1)).toMatchObject({ text: 'go forward', is_final: true });
    await session.concluded();
    expect(session.emitted.slice(-3).map(nameOf)).toEqual([
      'error:SHUTTING_DOWN',
      'billing_summary',
      'connection_closed',
    ]);
    expect(session.closed).toMatchObject({ code: 1012 });
  });

  it('waits 10 s for remaining finals on shutdown', async () => {
    const session = startedSession();
    for (const step of ['speech', 'end.shutdown']) session.receive(step);
    await session.passed(9_999);
    expect(session.state()).toBe('stopping');
    await session.passed(1);
    expect(session.emitted.at(-1)).toMatchObject({ code: 'SHUTTING_DOWN' });
    await session.concluded();
    expect(session.closed).toMatchObject({ code: 1012 });
  });

  it('times out without a start within a minute, even after a failed one', async () => {
    const session = startSession();
    await session.passed(59_999);
    for (const step of ['start', 'refused.language']) session.receive(step);
    await session.passed(59_999);
    expect(session.state()).toBe('established');
    await session.passed(1);
    expect(session.emitted.map(nameOf).at(-1)).toBe('error:start_timeout');
    await session.concluded();
    expect(session.closed).toMatchObject({ code: 1008 });
  });

  it('extends the start timeout silently after each keep-alive', async () => {
    const session = startSession();
    for (let minute = 0; minute < 5; minute += 1) {
      await session.passed(59_999);
      session.receive('alive');
    }
    expect([session.state(), session.emitted]).toEqual(['established', []]);
    await session.passed(60_000);
    expect(session.emitted.map(nameOf).at(-1)).toBe('error:start_timeout');
  });

  for (const [state, timeoutMs] of [
    ['starting', 30_000],
    ['stopping', 60_000],
  ] as const) {
    it(`times out when the pipeline stays ${state} for ${timeoutMs / 1000} s`, async () => {
      const session = startSession();
      for (const step of PATHS[state]) session.receive(step);
      await session.passed(timeoutMs - 1);
      expect(session.state()).toBe(state);
      await session.passed(1);
      expect(session.emitted.map(nameOf).at(-1)).toBe('error:STT_UPSTREAM_UNAVAILABLE');
    });
  }

  it('ends even if webhooks cannot be stored or storage hangs', async () => {
    const failing = startSession();
    failing.receive('end.shutdown');
    await failing.failConclusion();
    const waiting = startSession();
    waiting.receive('end.shutdown');
    await waiting.passed(5_000);
    for (const session of [failing, waiting]) {
      expect(session.closed).toMatchObject({ code: 1012 });
      expect(session.actor.getSnapshot().status).toBe('done');
    }
  });

  it('ends when its pipeline throws', () => {
    const session = startSession({ pipelineThrows: true });
    session.receive('start');
    expect(session.state()).toBe('concluding');
    expect(session.emitted.map(nameOf)).toEqual(['error:STT_UPSTREAM_UNAVAILABLE']);
  });
});

it('the context of a live session is plain data', async () => {
  const session = startedSession('start.context');
  for (const step of ['speech', 'hypothesis', 'recognised']) session.receive(step);
  const { context } = session.actor.getSnapshot();
  expect(structuredClone(context)).toEqual(context);
});

type Session = ReturnType<typeof startSession>;

function startedSession(start: 'start' | 'start.context' = 'start') {
  const session = startSession();
  session.receive(start);
  session.receive('opened');
  return session;
}

/** A session whose ports the test controls. */
function startSession({ mayRefine = true, pipelineThrows = false } = {}) {
  const clock = new SimulatedClock();
  const emitted: SttMessage[] = [];
  const commands: PipelineCommand[] = [];
  const bills = held<BillInput, Bill>();
  const refinements = held<RefineInput, RefinedText>();
  const concludes = held<ConcludeInput, Conclusion>();
  let pipeline: PipelineInput | null = null;
  let closed: { code: number; reason: string } | null = null;
  const machine = sttSessionMachine.provide({
    actors: {
      pipeline: fromCallback<PipelineCommand, PipelineInput>(({ input, receive }) => {
        if (pipelineThrows) throw new Error('broken');
        pipeline = input;
        receive((command) => void commands.push(command));
      }),
      bill: fromPromise<Bill, BillInput>(({ input }) => bills.ask(input)),
      refine: fromPromise<RefinedText, RefineInput>(({ input }) => refinements.ask(input)),
      conclude: fromPromise<Conclusion, ConcludeInput>(({ input }) => concludes.ask(input)),
    },
  });
  const actor = createActor(machine, { input: { sessionId: 'session-1', mayRefine }, clock });
  actor.on('message', ({ message }) => {
    expect(closed).toBeNull();
    emitted.push(message);
  });
  actor.on('closed', (close) => {
    closed = close;
  });
  actor.start();

  return {
    actor,
    emitted,
    commands,
    bills: bills.inputs,
    refinements: refinements.inputs,
    concludes: concludes.inputs,
    get pipeline() {
      return pipeline;
    },
    get closed() {
      return closed;
    },
    send: (event: SttSessionEvent) => actor.send(event),
    receive: (event: string) => actor.send(EVENTS[event]!),
    transcriptions: () =>
      emitted.filter((message): message is TranscriptionMessage => message.type === 'transcription'),
    /** The active state of the stream, and of the finals unless idle. */
    state: () => leaves(actor.getSnapshot().value).join('+'),
    billed: (amountNano = 100n) => bills.answer({ outcome: 'billed', amountNano }),
    answerBill: bills.answer,
    failBill: bills.fail,
    refined: (refined: Omit<RefinedText, 'words'>) => refinements.answer({ words: [], ...refined }),
    failRefinement: refinements.fail,
    concluded: (conclusion: Conclusion = { receivedMs: 0 }) => concludes.answer(conclusion),
    failConclusion: concludes.fail,
    async passed(ms: number) {
      clock.increment(ms);
      await settled();
    },
  };
}

function held<Input, Output>() {
  const inputs: Input[] = [];
  let latest: PromiseWithResolvers<Output> | null = null;
  return {
    inputs,
    ask(input: Input) {
      inputs.push(input);
      latest = Promise.withResolvers<Output>();
      return latest.promise;
    },
    async answer(output: Output) {
      latest!.resolve(output);
      await settled();
    },
    async fail() {
      latest!.reject(new Error('away'));
      await settled();
    },
  };
}

function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function leaves(value: unknown): string[] {
  if (typeof value === 'string') return value === 'waiting' ? [] : [value];
  return Object.values(value as Record<string, unknown>).flatMap(leaves);
}

function nameOf(message: SttMessage): string {
  if (message.type === 'error') return `error:${'error' in message ? message.error.code : message.code}`;
  if (message.type !== 'transcription') return message.type;
  if (!message.is_final) return 'interim';
  return message.speech_final ? `final:${message.processing_mode}` : 'first';
}

function word(text: string, startMs: number): RecognisedWord {
  return { word: text, startMs, endMs: startMs + 300, confidence: 0.9, speaker: null, original: null };
}

function recognised(utteranceId: number, text: string, words = [word(text, 500)]): SttSessionEvent {
  return {
    type: 'utterance.recognised',
    utteranceId,
    summary: SUMMARY,
    recognition: { text, words, language: 'en', languageProbability: null, confidence: 0.9, model: 'fake/en' },
    isDiarized: words.some(({ speaker }) => speaker !== null),
    lagMs: 120.2,
  };
}

function unusable(
  reason: Extract<SttSessionEvent, { type: 'utterance.unusable' }>['reason'],
  rejectedText: string | null,
): Extract<SttSessionEvent, { type: 'utterance.unusable' }> {
  return { type: 'utterance.unusable', utteranceId: 1, summary: SUMMARY, reason, rejectedText, lagMs: 80 };
}
