import { assign, fromPromise, setup } from 'xstate';
import { ERROR_CATALOGUE, type ErrorCode } from './errors.ts';
import { notProvided } from './not-provided.ts';
import type { AudioFormat, RecognisedWord, UnusableReason } from './utterances.ts';

/**
 * One file that becomes text. It is `uploading` from the moment its sender has a slot. Once the file is here the wallet
 * is looked at (`admitting`), the file is read (`decoding`), the wallet is looked at again for what so much audio costs
 * (`quoting`), and then it is `recognising` and, where a context was given, `refining`. Until then its sender may
 * cancel it, and it has a limited time: it ends as `cancelled` without a trace, or fails. `settling` charges and tells
 * webhooks in one transaction, and then it is `done`. What goes wrong once its wallet was good is `reporting`, which
 * tells webhooks, and has then `failed`; so has, without telling, what was never admitted.
 */
export const transcriptionMachine = setup({
  types: {} as {
    context: TranscriptionContext;
    input: { transcriptionId: string; limitMs: number };
    events: TranscriptionEvent;
    output: TranscriptionOutput;
  },
  actors: {
    /** Rejects when the wallet does not cover audio of that length; null asks whether there is anything in it. */
    requireFunds: fromPromise<void, Step & { durationMs: number | null }>(notProvided('requireFunds')),
    decode: fromPromise<DecodedAudio, Step>(notProvided('decode')),
    recognise: fromPromise<RecognisedFile, Step & { audio: DecodedAudio }>(notProvided('recognise')),
    /** Answers within its own time, with the original if need be. */
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
            // What was recognised is worth more than what might be mended.
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

/** What ports throw has a code when it is meant for the client. Never the cause: that is for the log. */
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

/** As a `TandemError` has it. */
export interface TranscriptionFailure {
  code: ErrorCode;
  message: string;
  retryAfterS?: number | null;
  details?: unknown;
}

/** A file whose samples can be listened to. */
export interface DecodedAudio {
  source: { filePath: string; offset: number; bytes: number; format: AudioFormat };
  durationMs: number;
  container: string;
  isIncomplete: boolean;
}

export interface RecognisedFile {
  text: string;
  /** Of most of the text; null when there is none. */
  language: string | null;
  languageProbability: number | null;
  snrDb: number | null;
  segments: RecognisedSegment[];
  /** In the order in which they are first heard. */
  speakers: string[];
  model: string;
  /** Whether keywords were given to a model that has no use for them. */
  ignoresKeywords: boolean;
  /** Cut at silences, and recognised in parts. */
  isChunked: boolean;
  /** Why parts of it have no text; empty when all have. */
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
  /** Null when nothing is owed. */
  charge: { entryId: string; chargedNano: bigint; balanceAfterNano: bigint } | null;
}
