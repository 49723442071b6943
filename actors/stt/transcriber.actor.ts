import { randomUUID } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type ActorRefFrom, createActor, fromPromise, type InspectionEvent, type Observer } from 'xstate';
import { TandemError } from '../../machines/errors.ts';
import { type TranscriptionOutput, transcriptionMachine } from '../../machines/transcription.machine.ts';
import { openAudioFile } from '../../media/audio-file/audio-file.ts';
import type { ListeningPlane } from '../../media/listening-plane.ts';
import type { Clock } from '../../runtime/clock.ts';
import { TRANSCRIPTION_LANGUAGES } from '../../speech/languages.ts';
import { type Refine, refineTranscript } from '../../speech/refinement.ts';
import type { SpeechRecognition } from '../../speech/speech-recognition.ts';
import type { Sql } from '../../storage/database.ts';
import type { Limits } from '../../storage/limits/limits.ts';
import type { Deliverer } from '../callbacks/deliverer.ts';
import { type SafeDownloadOptions, safeDownload } from '../callbacks/safe-download.ts';
import type { Logger } from '../logger.ts';
import { recogniseFile } from './file-recognition.ts';
import type { PendingTranscription, TranscribeRequest, Transcriber } from './transcriber.ts';
import { isContextDropped, presentTranscript } from './transcript-view.ts';
import { reportFailure, requireFunds, settleTranscription } from './transcription-account.ts';

export interface TranscriberOptions {
  sql: Sql;
  limits: Pick<Limits, 'acquireSlot'>;
  listening: Pick<ListeningPlane, 'listenToFile'>;
  recognition: Pick<SpeechRecognition, 'open' | 'engines'>;
  refine: Refine | null;
  deliverer: Pick<Deliverer, 'enqueue'>;
  /** Folder of uploads and decoded audio, with a subfolder for each. */
  tempDir: string;
  /** Options for downloads. Default: public addresses only. */
  download?: Partial<Pick<SafeDownloadOptions, 'allowCidrs' | 'resolve' | 'ca'>>;
  clock: Clock;
  logger: Logger;
  /** Time limit of a request with its upload (platform specification, Limits). Default 600 000. */
  limitMs?: number;
  inspect?: Observer<InspectionEvent> | ((event: InspectionEvent) => void);
}

const LIMIT_MS = 600_000;
const FETCH_WITHIN_MS = 120_000;
/** Longer than for live utterances: the whole text is refined at once. */
const REFINE_WITHIN_MS = 60_000;

interface LiveTranscription {
  requestId: string;
  folder: string;
  uploadPath: string;
  request: TranscribeRequest | null;
  /** Last error of a port. It has more detail than the machine's failure. */
  thrown: unknown;
}

export function createTranscriber(options: TranscriberOptions): Transcriber {
  const { sql, limits, tempDir, clock, logger, limitMs = LIMIT_MS } = options;
  const live = new Map<string, LiveTranscription>();
  const machine = transcriptionMachine.provide({ actors: ports(options, live) });

  return {
    languages: () => [
      { language_id: 'auto', name: 'Automatic detection', auto: true, rest: true, websocket: false },
      ...TRANSCRIPTION_LANGUAGES.map(({ code, name, isLive }) => {
        return { language_id: code, name, auto: false, rest: true, websocket: isLive };
      }),
    ],

    async models() {
      const engines = await options.recognition.engines();
      const usable = engines.filter(({ problem }) => problem === null);
      return [...new Set(usable.flatMap(({ engine, models }) => models.map((model) => `${engine}/${model}`)))];
    },

    async begin({ userId, requestId, signal }) {
      signal.throwIfAborted();
      const slot = await limits.acquireSlot({ userId, kind: 'stt' });
      const transcriptionId = randomUUID();
      const folder = join(tempDir, transcriptionId);
      try {
        await mkdir(folder, { recursive: true, mode: 0o700 });
      } catch (error) {
        await slot.release();
        throw error;
      }
      const entry = { requestId, folder, uploadPath: join(folder, 'upload'), request: null, thrown: null };
      live.set(transcriptionId, entry);
      const actor = createActor(machine, {
        input: { transcriptionId, limitMs },
        clock,
        ...(options.inspect && { inspect: options.inspect }),
      });
      return start(actor, { transcriptionId, entry, signal, release: () => slot.release() });
    },
  };

  function start(
    actor: ActorRefFrom<typeof machine>,
    {
      transcriptionId,
      entry,
      signal,
      release,
    }: { transcriptionId: string; entry: LiveTranscription; signal: AbortSignal; release: () => Promise<void> },
  ): PendingTranscription {
    const over = new AbortController();
    const finished = Promise.withResolvers<TranscriptionOutput>();
    finished.promise.catch(() => undefined);
    const cancel = () => actor.send({ type: 'transcription.cancelled', ...cancellationOf(signal.reason) });
    const stopListening = () => signal.removeEventListener('abort', cancel);
    const subscription = actor.subscribe({
      complete: () => {
        stopListening();
        const output = actor.getSnapshot().output!;
        if (output.outcome === 'failed') over.abort(errorOf(output, entry.thrown));
        finished.resolve(output);
      },
      error(error) {
        stopListening();
        logger.error({ transcriptionId, err: error }, 'transcription actor failed');
        over.abort(error);
        finished.reject(error);
      },
    });
    actor.start();
    if (signal.aborted) cancel();
    else signal.addEventListener('abort', cancel, { once: true });
    let ended: Promise<void> | null = null;

    async function end(): Promise<void> {
      stopListening();
      // A stopped actor also completes, but without output.
      subscription.unsubscribe();
      actor.stop();
      const ending = new TandemError('STT_CLIENT_CANCELLED', 'The transcription was cancelled.');
      over.abort(ending);
      finished.reject(ending);
      live.delete(transcriptionId);
      await rm(entry.folder, { recursive: true, force: true }).catch((error: unknown) => {
        // The next start empties the parent folder.
        logger.warn({ transcriptionId, err: error }, 'an upload could not be removed');
      });
      await release();
    }

    return {
      uploadPath: entry.uploadPath,
      signal: over.signal,
      async download(url, { maxBytes }) {
        const { mediaType } = await safeDownload({
          ...{ allowCidrs: [], ...options.download },
          ...{ url, filePath: entry.uploadPath, mostBytes: maxBytes, timeoutMs: FETCH_WITHIN_MS, signal: over.signal },
          refusedAs: { code: 'INVALID_AUDIO_URL', field: 'url' },
          unreachableAs: 'AUDIO_URL_UNREACHABLE',
        });
        return { fileName: fileNameOf(url), mediaType };
      },
      async transcribe(request) {
        entry.request = request;
        const startedMs = clock.monotonicMs();
        actor.send({
          type: 'upload.received',
          wantsRefinement: request.context !== null && !isContextDropped(request),
        });
        const output = await finished.promise;
        if (output.outcome === 'failed') throw errorOf(output, entry.thrown);
        const processingMs = clock.monotonicMs() - startedMs;
        const transcript = presentTranscript({ ...output, request, processingMs });
        return { transcript, charge: output.settlement.charge };
      },
      end: () => {
        ended ??= end();
        return ended;
      },
    };
  }

  function ports(
    { listening, recognition, refine, deliverer }: TranscriberOptions,
    transcriptions: ReadonlyMap<string, LiveTranscription>,
  ) {
    const account = () => ({ sql, deliverer, now: new Date(clock.now()) });
    const started = (transcriptionId: string) => {
      const { request, ...rest } = transcriptions.get(transcriptionId)!;
      return { transcriptionId, ...rest, request: request! };
    };
    /** Records the thrown error, because the machine does not. */
    const noting = async <Result>(transcriptionId: string, work: () => Promise<Result>): Promise<Result> => {
      try {
        return await work();
      } catch (error) {
        const entry = transcriptions.get(transcriptionId);
        if (entry) entry.thrown = error;
        throw error;
      }
    };
    type Ports = NonNullable<Parameters<typeof transcriptionMachine.provide>[0]['actors']>;
    return {
      requireFunds: fromPromise(({ input: { transcriptionId, durationMs } }) =>
        noting(transcriptionId, () => requireFunds(sql, started(transcriptionId).request, durationMs)),
      ),
      decode: fromPromise(({ input: { transcriptionId }, signal }) =>
        noting(transcriptionId, async () => {
          const { uploadPath, folder, request } = started(transcriptionId);
          const { dispose, ...audio } = await openAudioFile({
            ...request,
            filePath: uploadPath,
            tempDir: folder,
            signal,
          });
          return audio;
        }),
      ),
      recognise: fromPromise(({ input: { transcriptionId, audio }, signal }) =>
        noting(transcriptionId, () => {
          const { request } = started(transcriptionId);
          return recogniseFile({ transcriptionId, request, audio, listening, recognition, signal });
        }),
      ),
      refine: fromPromise(({ input: { transcriptionId, file }, signal }) => {
        const { context, keywords } = started(transcriptionId).request;
        const talk = { general: [], text: context, terms: keywords.map(({ term }) => term) };
        const original = { text: file.text, language: file.language ?? 'und' };
        return refineTranscript(original, { refine, context: talk, timeoutMs: REFINE_WITHIN_MS, clock, signal });
      }),
      settle: fromPromise(({ input: { transcriptionId, ...result } }) =>
        noting(transcriptionId, () => settleTranscription(started(transcriptionId), result, account())),
      ),
      reportFailure: fromPromise(async ({ input: { transcriptionId, failure } }) => {
        const transcription = transcriptions.get(transcriptionId);
        // Timed out during the upload, when the workspace was not yet known.
        if (!transcription?.request) return;
        await reportFailure(started(transcriptionId), failure.code, account()).catch((error: unknown) => {
          logger.warn({ transcriptionId, err: error }, 'webhook event of a failed transcription could not be stored');
        });
      }),
    } satisfies Ports;
  }
}

/** Last path segment, such as `call.ulaw`, because raw G.711 is recognised by its name. */
function fileNameOf(url: string): string | null {
  return URL.parse(url)?.pathname.split('/').at(-1) || null;
}

/** Returns the port's error with its cause if it matches the failure; otherwise builds one. */
function errorOf({ failure }: Extract<TranscriptionOutput, { outcome: 'failed' }>, thrown: unknown): unknown {
  const isSame = thrown instanceof TandemError ? thrown.code === failure.code : failure.code === 'INTERNAL';
  if (thrown !== null && isSame) return thrown;
  const { code, message, retryAfterS, details } = failure;
  return new TandemError(code, message, { details, ...(retryAfterS != null && { retryAfterS }) });
}

function cancellationOf(reason: unknown): Pick<TandemError, 'code' | 'message'> {
  if (reason instanceof TandemError) return { code: reason.code, message: reason.message };
  return { code: 'STT_CLIENT_CANCELLED', message: 'The client closed the connection.' };
}
