import { assign, fromPromise, setup } from 'xstate';
import { ERROR_CATALOGUE, type ErrorCode } from './errors.ts';
import { notProvided } from './not-provided.ts';
import type { AudioFormat, RecognisedWord, UnusableReason } from './utterances.ts';

/**
 * Transcription of a file. It is `uploading` once its sender has a slot. Then `admitting` checks the wallet, `decoding`
 * reads the file, and `quoting` checks the wallet for its duration. Then it is `recognising` and, with a context,
 * `refining`. Until then the sender may cancel it, and a time limit applies: it ends as `cancelled`, which stores
 * nothing, or it fails. `settling` charges and stores the webhook events in one transaction; then it is `done`. A
 * failure after admission is `reporting`, which sends webhooks, before `failed`. An earlier failure is `failed` at
 * once.
 */
export const transcriptionMachine = setup({
  types: {} as {
    context: TranscriptionContext;
    input: { transcriptionId: string; limitMs: number };
    events: TranscriptionEvent;
    output: TranscriptionOutput;
  },
  actors: {
    /** Rejects if the wallet does not cover this duration. Null checks only that the balance is positive. */
    requireFunds: fromPromise<void, Step & { durationMs: number | null }>(notProvided('requireFunds')),
    decode: fromPromise<DecodedAudio, Step>(notProvided('decode')),
    recognise: fromPromise<RecognisedFile, Step & { audio: DecodedAudio }>(notProvided('recognise')),
    /** Resolves within its own time limit, if necessary with the original text. */
    refine: fromPromise<RefinedFile, Step & { file: RecognisedFile }>(notProvided('refine')),
    settle: fromPromise<Settlement, SettleInput>(notProvided('settle')),
    reportFailure: fromPromise<void, Step & { failure: TranscriptionFailure }>(notProvided('reportFailure')),
  },
  delays: { limit: ({ context }) => context.limitMs },
  guards: {
    hasWordsToRefine: ({ context }, { text }: { text: string }) => context.wantsRefinement && text !== '',
  },
  actions: {
    noteUpload: assign((_, { wantsRefinement }: { wantsRefinement: boolean }) => ({ wantsRefinement })),
    noteAudio: assign((_, audio: DecodedAudio) => ({ audio })),
    noteFile: assign((_, file: RecognisedFile) => ({ file })),
    storeRefinement: assign((_, refined: RefinedFile) => ({ refined })),
    noteSettlement: assign((_, settlement: Settlement) => ({ settlement })),
    countFailure: assign((_, { error }: { error: unknown }) => ({ failure: failureOf(error) })),
    noteTimeout: assign({ failure: { code: 'STT_TIMEOUT', message: 'It took longer than a request may.' } }),
  },
}).createMachine({
  id: 'transcription',
  context: ({ input }) => ({
    ...input,
    wantsRefinement: false,
    audio: null,
    file: null,
    refined: null,
    settlement: null,
    failure: null,
  }),
  initial: 'working',
  states: {
    working: {
      initial: 'uploading',
      after: { limit: { target: 'reporting', actions: 'noteTimeout' } },
      on: {
        'transcription.cancelled': {
          target: 'cancelled',
          actions: { type: 'countFailure', params: ({ event }) => ({ error: event }) },
        },
      },
      states: {
        uploading: {
          on: {
            'upload.received': { target: 'admitting', actions: { type: 'noteUpload', params: ({ event }) => event } },
          },
        },
        admitting: {
          invoke: {
            src: 'requireFunds',
            input: ({ context: { transcriptionId } }) => ({ transcriptionId, durationMs: null }),
            onDone: 'decoding',
            onError: {
              target: '#transcription.failed',
              actions: { type: 'countFailure', params: ({ event }) => event },
            },
          },
        },
        decoding: {
          invoke: {
            src: 'decode',
            input: ({ context: { transcriptionId } }) => ({ transcriptionId }),
            onDone: { target: 'quoting', actions: { type: 'noteAudio', params: ({ event }) => event.output } },
            onError: {
              target: '#transcription.reporting',
              actions: { type: 'countFailure', params: ({ event }) => event },
            },
          },
        },
        quoting: {
          invoke: {
            src: 'requireFunds',
            input: ({ context: { transcriptionId, audio } }) => ({ transcriptionId, durationMs: audio!.durationMs }),
            onDone: 'recognising',
            onError: {
              target: '#transcription.failed',
              actions: { type: 'countFailure', params: ({ event }) => event },
            },
          },
        },
        recognising: {
          invoke: {
            src: 'recognise',
            input: ({ context: { transcriptionId, audio } }) => ({ transcriptionId, audio: audio! }),
            onDone: [
              {
                guard: { type: 'hasWordsToRefine', params: ({ event }) => event.output },
                target: 'refining',
                actions: { type: 'noteFile', params: ({ event }) => event.output },
              },
              {
                target: '#transcription.settling',
                actions: { type: 'noteFile', params: ({ event }) => event.output },
              },
            ],
            onError: {
              target: '#transcription.reporting',
              actions: { type: 'countFailure', params: ({ event }) => event },
            },
          },
        },
        refining: {
          invoke: {
            src: 'refine',
            input: ({ context: { transcriptionId, file } }) => ({ transcriptionId, file: file! }),
            onDone: {
              target: '#transcription.settling',
              actions: { type: 'storeRefinement', params: ({ event }) => event.output },
            },
            // The recognised text is worth more than its refinement.
            onError: '#transcription.settling',
          },
        },
      },
    },
    settling: {
      invoke: {
        src: 'settle',
        input: ({ context: { transcriptionId, audio, file, refined } }) => ({
          transcriptionId,
          audio: audio!,
          file: file!,
          refined,
        }),
        onDone: { target: 'done', actions: { type: 'noteSettlement', params: ({ event }) => event.output } },
        onError: { target: 'reporting', actions: { type: 'countFailure', params: ({ event }) => event } },
      },
    },
    reporting: {
      invoke: {
        src: 'reportFailure',
        input: ({ context: { transcriptionId, failure } }) => ({ transcriptionId, failure: failure! }),
        onDone: 'failed',
        onError: 'failed',
      },
    },
    done: { type: 'final' },
    failed: { type: 'final' },
    cancelled: { type: 'final' },
  },
  output: ({ context: { audio, file, refined, settlement, failure } }) =>
    failure === null
      ? { outcome: 'done', audio: audio!, file: file!, refined, settlement: settlement! }
      : { outcome: 'failed', failure },
});

/** The client's error for what a port threw; `INTERNAL` without a known code. Omits the cause, which is only logged. */
function failureOf(error: unknown): TranscriptionFailure {
  const { code, message, retryAfterS, details } = (error ?? {}) as Partial<TranscriptionFailure>;
  if (typeof message !== 'string' || !Object.hasOwn(ERROR_CATALOGUE, code ?? '')) {
    return { code: 'INTERNAL', message: 'Something went wrong here. The request id helps to find it.' };
  }
  return { code: code!, message, retryAfterS: retryAfterS ?? null, details };
}

export interface TranscriptionContext {
  transcriptionId: string;
  limitMs: number;
  wantsRefinement: boolean;
  audio: DecodedAudio | null;
  file: RecognisedFile | null;
  refined: RefinedFile | null;
  settlement: Settlement | null;
  failure: TranscriptionFailure | null;
}

export type TranscriptionEvent =
  | { type: 'upload.received'; wantsRefinement: boolean }
  | { type: 'transcription.cancelled'; code: ErrorCode; message: string };

export type TranscriptionOutput =
  | {
      outcome: 'done';
      audio: DecodedAudio;
      file: RecognisedFile;
      refined: RefinedFile | null;
      settlement: Settlement;
    }
  | { outcome: 'failed'; failure: TranscriptionFailure };

interface Step {
  transcriptionId: string;
}

interface SettleInput extends Step {
  audio: DecodedAudio;
  file: RecognisedFile;
  refined: RefinedFile | null;
}

export interface TranscriptionFailure {
  code: ErrorCode;
  message: string;
  retryAfterS?: number | null;
  details?: unknown;
}

/** A file with readable samples. */
export interface DecodedAudio {
  source: { filePath: string; offset: number; bytes: number; format: AudioFormat };
  durationMs: number;
  container: string;
  isIncomplete: boolean;
}

export interface RecognisedFile {
  text: string;
  /** Language of most of the text; null without text. */
  language: string | null;
  languageProbability: number | null;
  snrDb: number | null;
  segments: RecognisedSegment[];
  /** In order of first occurrence. */
  speakers: string[];
  model: string;
  ignoresKeywords: boolean;
  /** Whether the audio was split at silences and recognised in chunks. */
  isChunked: boolean;
  /** Why parts of it have no text; empty if all have text. */
  unusable: UnusableReason[];
}

export interface RecognisedSegment {
  chunkIndex: number;
  startMs: number;
  endMs: number;
  text: string;
  speaker: string | null;
  language: string;
  words: RecognisedWord[];
}

export interface RefinedFile {
  text: string;
  llmApplied: boolean;
  llmReason: string | null;
}

export interface Settlement {
  /** Null if nothing was charged. */
  charge: { entryId: string; chargedNano: bigint; balanceAfterNano: bigint } | null;
}
