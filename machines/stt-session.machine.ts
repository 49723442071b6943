import { and, assertEvent, assign, emit, enqueueActions, fromCallback, fromPromise, not, sendTo, setup } from 'xstate';
import { notProvided } from './not-provided.ts';
import {
  closeOf,
  configOnWire,
  endingError,
  finalMessage,
  interimMessage,
  RECOGNITION_LOST,
  STORAGE_LOST,
  type SttMessage,
  type SttSessionEmitted,
  sentenceId,
} from './stt-messages.ts';
import type {
  Bill,
  BillInput,
  ConcludeInput,
  Conclusion,
  FinalUtterance,
  PipelineCommand,
  PipelineInput,
  RefinedText,
  RefineInput,
  SttEnding,
  SttSessionContext,
  SttSessionEvent,
  SttSessionInput,
  SttSettings,
} from './stt-session-events.ts';
import { joinedTexts, seconds } from './utterances.ts';

const MAX_BILL_FAILURES = 5;

/** More than a webhook can carry. */
const MAX_TRANSCRIPT_LENGTH = 20_000;

/**
 * One live transcription, from the moment its client is known and funded.
 *
 * - `established` waits a minute for `start` or a keepalive.
 * - `running` has two regions. The stream is `starting` while recognition and listening open, `started` (`listening`
 *   or `speaking`) while audio arrives, and `stopping` after the client's stop until the rest is recognised. Ended
 *   utterances queue in the other region. With context, each is reported at once and then `refining`. `billing` charges
 *   it before the canonical final is reported; an utterance that the wallet does not cover is not reported. One without
 *   usable text is reported and not billed.
 * - `concluding` follows every ending; the first one decides the reason. It reports the reason, stores the webhooks,
 *   and sends the summary and the close.
 *
 * Everything that the client sees is emitted as `message`, in order.
 */
export const sttSessionMachine = setup({
  types: {} as {
    context: SttSessionContext;
    input: SttSessionInput;
    events: SttSessionEvent;
    emitted: SttSessionEmitted;
  },
  actors: {
    /** Opens recognition and listening, executes `PipelineCommand`s in order, and forwards their events. */
    pipeline: fromCallback<PipelineCommand, PipelineInput>(notProvided('pipeline')),
    /** Idempotent; rejects while storage is unreachable. */
    bill: fromPromise<Bill, BillInput>(notProvided('bill')),
    /** Resolves within its own time limit, if necessary with the original text. */
    refine: fromPromise<RefinedText, RefineInput>(notProvided('refine')),
    conclude: fromPromise<Conclusion, ConcludeInput>(notProvided('conclude')),
  },
  delays: {
    startPatience: 60_000,
    startTimeout: 30_000,
    /** Twice the highest lag of an overloaded recogniser. */
    stopTimeout: 60_000,
    /** The server's shutdown waits for it. */
    shutdownTimeout: 10_000,
    refineTimeout: 1_000,
    billTimeout: 5_000,
    billRetry: ({ context }) => 250 * 2 ** context.billFailures,
    concludeTimeout: 5_000,
  },
  guards: {
    canRetryStart: ({ event }) =>
      event.type === 'pipeline.refused' && ['unsupported_language', 'VALIDATION_FAILED'].includes(event.code),
    isEndOfSpeech: ({ context, event }) => 'utteranceId' in event && event.utteranceId === context.speakingId,
    hasFinal: ({ context }) => context.finals.length > 0,
    isUsable: ({ context }) => context.finals[0]?.mode === 'speech_end',
    isRefined: ({ context }) => context.talk !== null,
    isShutdown: ({ event }) => event.type === 'end.requested' && event.ending.kind === 'shutdown',
    isShuttingDown: ({ context }) => context.ending?.kind === 'shutdown',
    isRecognitionOver: ({ context }) => context.isRecognitionOver,
    isContinuous: ({ context }) => context.settings!.isContinuous,
    isCovered: (_, { outcome }: Bill) => outcome === 'billed',
    canRetryBill: ({ context }) => context.billFailures < MAX_BILL_FAILURES,
  },
  actions: {
    emitMessage: emit((_, message: SttMessage) => ({ type: 'message' as const, message })),
    emitError: emit((_, { code = 'invalid_state', message }: { code?: string; message: string }) => ({
      type: 'message' as const,
      message: { type: 'error' as const, code, message },
    })),
    emitSpeechStarted: emit(({ event }) => {
      const { utteranceId, atMs } = event as Extract<SttSessionEvent, { type: 'speech.started' }>;
      const message = { type: 'speech_started' as const, sentence_id: sentenceId(utteranceId), start: seconds(atMs) };
      return { type: 'message' as const, message };
    }),
    emitSessionStarted: emit(({ context: { sessionId, settings, talk, warnings } }) => ({
      type: 'message' as const,
      message: {
        type: 'session_started' as const,
        session_id: sessionId,
        diarize: settings!.diarize,
        llm_refinement: talk !== null,
        warning_codes: [...warnings],
        config: configOnWire(settings!, talk),
      },
    })),
    emitConfigUpdated: emit(({ context: { settings, talk, warnings } }) => ({
      type: 'message' as const,
      message: {
        type: 'config_updated' as const,
        warning_codes: [...warnings],
        config: configOnWire(settings!, talk),
      },
    })),
    emitInterim: emit(({ event }) => ({
      type: 'message' as const,
      message: interimMessage(event as Extract<SttSessionEvent, { type: 'utterance.hypothesis' }>),
    })),
    emitCanonicalFinal: emit(({ context }) => ({
      type: 'message' as const,
      message: finalMessage(context.finals[0]!, { isCanonical: true, refined: context.refined }),
    })),
    storeStart: assign(({ context, event }) => {
      const { settings, talk } = event as Extract<SttSessionEvent, { type: 'start.requested' }>;
      const isDropped = talk !== null && !context.mayRefine;
      return {
        settings,
        talk: isDropped ? null : talk,
        warnings: isDropped ? ['llm_refinement_not_in_plan'] : [],
      };
    }),
    storeWarnings: assign(({ context, event }) => {
      assertEvent(event, ['pipeline.opened', 'pipeline.configured']);
      // Another language may use another model.
      const others = context.warnings.filter((code) => code !== 'keywords_not_boosted');
      return { warnings: event.ignoresTerms ? [...others, 'keywords_not_boosted'] : others };
    }),
    storeSettings: assign((_, { settings }: { settings: SttSettings }) => ({ settings })),
    storeSpeakingId: assign({
      speakingId: ({ event }) => (event.type === 'speech.started' ? event.utteranceId : null),
    }),
    storeInterim: assign(({ event }) => {
      const { utteranceId, text, words } = event as Extract<SttSessionEvent, { type: 'utterance.hypothesis' }>;
      return { interim: { utteranceId, text, words } };
    }),
    enqueueFinal: enqueueActions(({ enqueue, context, event }) => {
      const final = finalOf(event as OutcomeEvent, context);
      enqueue.assign({ finals: [...context.finals, final] });
      if (context.talk === null || final.mode !== 'speech_end') return;
      enqueue.emit({ type: 'message', message: finalMessage(final, { isCanonical: false, refined: null }) });
    }),
    dequeueFinal: assign(({ context }) => {
      const [reported, ...finals] = context.finals;
      // The tentative text of a rejected utterance is not part of the transcript.
      const { text } = reported!.mode === 'speech_end' ? (context.refined ?? reported!) : { text: '' };
      const transcript = joinedTexts([context.transcript, text]);
      return {
        finals,
        refined: null,
        transcript: transcript.slice(0, MAX_TRANSCRIPT_LENGTH),
        language: reported!.language ?? context.language,
      };
    }),
    storeRefinement: assign((_, refined: RefinedText) => ({ refined })),
    skipRefinement: assign(({ context: { finals } }) => {
      const { text, words } = finals[0]!;
      return { refined: { text, words, llmApplied: false, llmReason: 'llm_unavailable', llmLatencyMs: null } };
    }),
    addCost: assign(({ context }, { amountNano }: { amountNano: bigint }) => ({
      billedMs: context.billedMs + durationMs(context.finals[0]!),
      chargedNano: context.chargedNano + amountNano,
      billFailures: 0,
    })),
    countBillFailure: assign(({ context }) => ({ billFailures: context.billFailures + 1 })),
    storeSnr: assign((_, { snrDb }: { snrDb: number | null }) => ({ snrDb })),
    markRecognitionOver: assign({ isRecognitionOver: true }),
    setEnding: assign((_, { ending }: { ending: SttEnding }) => ({ ending })),
    setUsualEnding: assign(({ context }) => ({ ending: context.ending ?? ({ kind: 'stopped' } as const) })),
    sendToPipeline: sendTo('pipeline', (_, command: PipelineCommand) => command),
    emitEnding: enqueueActions(({ enqueue, context }) => {
      const message = endingError(context.ending!);
      if (message !== null) enqueue.emit({ type: 'message', message });
    }),
    emitSummary: enqueueActions(({ enqueue, context }, { receivedMs }: Conclusion) => {
      const ending = context.ending!;
      const close = closeOf(ending);
      const send = (message: SttMessage) => enqueue.emit({ type: 'message', message });
      send({
        type: 'billing_summary',
        total_duration_seconds: seconds(context.billedMs),
        client_estimated_seconds: seconds(receivedMs),
        amount: Number(context.chargedNano) / 1e9,
        currency: 'USD',
      });
      if (ending.kind === 'stopped') send({ type: 'session_stopped' });
      send({ type: 'connection_closed', ...close });
      enqueue.emit({ type: 'closed', ...close });
    }),
  },
}).createMachine({
  id: 'sttSession',
  context: ({ input }) => ({
    ...input,
    settings: null,
    talk: null,
    warnings: [],
    speakingId: null,
    interim: null,
    finals: [],
    refined: null,
    isRecognitionOver: false,
    billFailures: 0,
    billedMs: 0,
    chargedNano: 0n,
    transcript: '',
    language: null,
    snrDb: null,
    ending: null,
  }),
  initial: 'active',
  states: {
    active: {
      on: {
        'end.requested': {
          target: 'concluding',
          actions: { type: 'setEnding', params: ({ event }) => ({ ending: event.ending }) },
        },
        'start.requested': {
          actions: { type: 'emitError', params: { message: 'The session has been started already.' } },
        },
        'config.requested': { actions: { type: 'emitError', params: { message: 'There is no started session.' } } },
      },
      initial: 'established',
      states: {
        established: {
          // A session occupies one of its user's slots.
          after: {
            startPatience: {
              target: '#sttSession.concluding',
              actions: { type: 'setEnding', params: { ending: { kind: 'unstarted' } } },
            },
          },
          on: {
            'start.requested': { target: 'running', actions: 'storeStart' },
            'client.alive': { target: 'established', reenter: true },
            'stop.requested': {
              target: '#sttSession.concluding',
              actions: { type: 'setEnding', params: { ending: { kind: 'stopped' } } },
            },
          },
        },
        running: {
          invoke: {
            id: 'pipeline',
            src: 'pipeline',
            input: ({ context: { sessionId, settings, talk } }) => ({
              sessionId,
              settings: settings!,
              terms: talk?.terms ?? [],
            }),
            onError: '#sttSession.broken',
          },
          on: {
            'listening.lost': '#sttSession.broken',
            'recognition.overloaded': {
              target: '#sttSession.concluding',
              actions: { type: 'setEnding', params: { ending: { kind: 'overloaded' } } },
            },
            'recognition.failed': {
              target: '#sttSession.concluding',
              actions: {
                type: 'setEnding',
                params: ({ event: { code, message, retryAfterS } }) => ({
                  ending: { kind: 'failed', code, message, retryAfterS },
                }),
              },
            },
          },
          type: 'parallel',
          states: {
            stream: {
              on: {
                // Includes a change that crossed the stop: each is answered once.
                'pipeline.configured': {
                  actions: [
                    { type: 'storeSettings', params: ({ event }) => ({ settings: event.settings }) },
                    'storeWarnings',
                    'emitConfigUpdated',
                  ],
                },
                'pipeline.config_refused': {
                  actions: { type: 'emitError', params: ({ event: { code, message } }) => ({ code, message }) },
                },
              },
              initial: 'starting',
              states: {
                starting: {
                  after: { startTimeout: '#sttSession.broken' },
                  on: {
                    'pipeline.opened': { target: 'started', actions: ['storeWarnings', 'emitSessionStarted'] },
                    'pipeline.refused': [
                      {
                        guard: 'canRetryStart',
                        target: '#sttSession.active.established',
                        actions: {
                          type: 'emitError',
                          params: ({ event: { code, message } }) => ({ code, message }),
                        },
                      },
                      {
                        target: '#sttSession.concluding',
                        actions: {
                          type: 'setEnding',
                          params: ({ event: { code, message } }) => ({ ending: { kind: 'failed', code, message } }),
                        },
                      },
                    ],
                    'stop.requested': {
                      target: '#sttSession.concluding',
                      actions: { type: 'setEnding', params: { ending: { kind: 'stopped' } } },
                    },
                  },
                },
                started: {
                  on: {
                    'stop.requested': 'stopping',
                    // Reports the speech so far first.
                    'end.requested': {
                      guard: 'isShutdown',
                      target: 'stopping',
                      actions: { type: 'setEnding', params: ({ event }) => ({ ending: event.ending }) },
                    },
                    'config.requested': {
                      actions: {
                        type: 'sendToPipeline',
                        params: ({ event }) => ({ type: 'configure', change: event.change }),
                      },
                    },
                    'speech.started': { target: '.speaking', actions: ['storeSpeakingId', 'emitSpeechStarted'] },
                  },
                  initial: 'listening',
                  states: {
                    listening: {},
                    speaking: {
                      on: {
                        'utterance.recognised': { guard: 'isEndOfSpeech', target: 'listening' },
                        'utterance.unusable': { guard: 'isEndOfSpeech', target: 'listening' },
                      },
                    },
                  },
                },
                stopping: {
                  entry: { type: 'sendToPipeline', params: { type: 'finish' } },
                  after: {
                    shutdownTimeout: { guard: 'isShuttingDown', target: '#sttSession.concluding' },
                    stopTimeout: '#sttSession.broken',
                  },
                  on: {
                    'end.requested': { guard: 'isShutdown' },
                    'config.requested': {
                      actions: { type: 'emitError', params: { message: 'The session is being stopped.' } },
                    },
                    'speech.started': { actions: 'emitSpeechStarted' },
                    'pipeline.analysed': {
                      actions: { type: 'storeSnr', params: ({ event }) => ({ snrDb: event.snrDb }) },
                    },
                  },
                },
              },
            },
            finals: {
              on: {
                'utterance.hypothesis': { actions: ['storeInterim', 'emitInterim'] },
                'utterance.recognised': { actions: 'enqueueFinal' },
                'utterance.unusable': { actions: 'enqueueFinal' },
                'recognition.ended': { actions: 'markRecognitionOver' },
                'recognition.impaired': {
                  actions: { type: 'emitError', params: ({ event: { code, message } }) => ({ code, message }) },
                },
              },
              initial: 'waiting',
              states: {
                waiting: {
                  always: [
                    { guard: and(['hasFinal', not('isUsable')]), target: 'telling' },
                    { guard: and(['hasFinal', 'isRefined']), target: 'refining' },
                    { guard: 'hasFinal', target: 'billing' },
                    { guard: 'isRecognitionOver', target: '#sttSession.concluding', actions: 'setUsualEnding' },
                  ],
                },
                refining: {
                  // If the port exceeds its time limit, only the refinement is lost.
                  after: { refineTimeout: { target: 'billing', actions: 'skipRefinement' } },
                  invoke: {
                    src: 'refine',
                    input: ({ context: { finals, talk } }) => {
                      const { text, words, language, removeFillers } = finals[0]!;
                      return { text, words, language: language ?? '', talk: talk!, removeFillers };
                    },
                    onDone: {
                      target: 'billing',
                      actions: { type: 'storeRefinement', params: ({ event }) => event.output },
                    },
                    onError: { target: 'billing', actions: 'skipRefinement' },
                  },
                },
                billing: {
                  after: { billTimeout: { target: 'unbilled' } },
                  invoke: {
                    src: 'bill',
                    input: ({ context: { sessionId, finals } }) => ({
                      sessionId,
                      utteranceId: finals[0]!.utteranceId,
                      durationMs: durationMs(finals[0]!),
                      diarized: finals[0]!.diarized,
                    }),
                    onDone: [
                      {
                        guard: { type: 'isCovered', params: ({ event }) => event.output },
                        target: 'telling',
                        actions: {
                          type: 'addCost',
                          params: ({ event }) => event.output as Extract<Bill, { outcome: 'billed' }>,
                        },
                      },
                      {
                        target: '#sttSession.concluding',
                        actions: { type: 'setEnding', params: ({ event }) => ({ ending: exhausted(event.output) }) },
                      },
                    ],
                    onError: 'unbilled',
                  },
                },
                unbilled: {
                  entry: 'countBillFailure',
                  after: {
                    billRetry: [
                      { guard: 'canRetryBill', target: 'billing' },
                      {
                        target: '#sttSession.concluding',
                        actions: { type: 'setEnding', params: { ending: STORAGE_LOST } },
                      },
                    ],
                  },
                },
                telling: {
                  entry: 'emitCanonicalFinal',
                  always: [
                    {
                      guard: and([not('isContinuous'), 'isUsable']),
                      target: '#sttSession.concluding',
                      actions: ['dequeueFinal', 'setUsualEnding'],
                    },
                    { target: 'waiting', actions: 'dequeueFinal' },
                  ],
                },
              },
            },
          },
        },
      },
    },
    broken: {
      entry: { type: 'setEnding', params: { ending: RECOGNITION_LOST } },
      always: 'concluding',
    },
    concluding: {
      entry: 'emitEnding',
      after: { concludeTimeout: { target: 'ended', actions: { type: 'emitSummary', params: { receivedMs: 0 } } } },
      invoke: {
        src: 'conclude',
        input: ({ context: { sessionId, ending, transcript, language, snrDb } }) => ({
          sessionId,
          ending: ending!,
          transcript,
          language,
          snrDb,
        }),
        onDone: { target: 'ended', actions: { type: 'emitSummary', params: ({ event }) => event.output } },
        onError: { target: 'ended', actions: { type: 'emitSummary', params: { receivedMs: 0 } } },
      },
    },
    ended: { type: 'final' },
  },
});

type OutcomeEvent = Extract<SttSessionEvent, { type: 'utterance.recognised' | 'utterance.unusable' }>;

/** An utterance rejected as a hallucination keeps its last interim as a tentative text. */
function finalOf(event: OutcomeEvent, { settings, interim }: SttSessionContext): FinalUtterance {
  const { utteranceId, summary, lagMs } = event;
  const { diarize, removeFillers } = settings!;
  // The settings may have changed while it was spoken.
  const diarized = event.type === 'utterance.recognised' ? event.isDiarized : diarize;
  const about = { utteranceId, summary, lagMs, diarized, removeFillers };
  if (event.type === 'utterance.recognised') {
    const { text, words, language } = event.recognition;
    if (text.trim() !== '') return { ...about, mode: 'speech_end', text, words, language };
    return { ...about, mode: 'speech_end_no_result', text: '', words: [], language };
  }
  const { reason: mode, rejectedText } = event;
  if (mode !== 'hallucination_rejected') return { ...about, mode, text: '', words: [], language: null };
  const cached = interim?.utteranceId === utteranceId ? interim : { text: rejectedText ?? '', words: [] };
  return { ...about, mode, text: cached.text, words: cached.words, language: null };
}

function durationMs({ summary }: FinalUtterance): number {
  return Math.max(1, Math.ceil(summary.endMs - summary.startMs));
}

function exhausted(bill: Bill): SttEnding {
  const { message, details } = bill as Extract<Bill, { outcome: 'insufficient' }>;
  return { kind: 'exhausted', message, details };
}
