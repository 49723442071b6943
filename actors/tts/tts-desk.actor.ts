import { randomUUID } from 'node:crypto';
import { createActor, fromPromise } from 'xstate';
import { shuttingDown, TandemError } from '../../machines/errors.ts';
import { type TtsStreamEnding, ttsStreamMachine } from '../../machines/tts-stream.machine.ts';
import { seconds } from '../../machines/utterances.ts';
import type { Clock } from '../../runtime/clock.ts';
import { within } from '../../runtime/waiting.ts';
import type { SpeechSynthesis, SpokenPart } from '../../speech/speech-synthesis.ts';
import { endsSentence, pauseAfterMs } from '../../speech/synthesis/pauses.ts';
import { SynthesizerError } from '../../speech/synthesizer.ts';
import type { Script, ScriptClause, ScriptWord } from '../../speech/text/script.ts';
import type { VoiceCatalogue } from '../../speech/voices/catalogue.ts';
import type { Sql } from '../../storage/database.ts';
import type { Charge } from '../../storage/ledger.ts';
import type { ObjectStore } from '../../storage/objects.ts';
import { setDeliveredCharacters } from '../../storage/queries/tts-streams.ts';
import type { Deliverer } from '../callbacks/deliverer.ts';
import { Handover } from '../handover.ts';
import type { Logger } from '../logger.ts';
import type { SpeakableVoice, VoiceDesk } from '../voices/voice-desk.ts';
import { DeliveredText } from './delivered-text.ts';
import { fileExtensionOf, KeptAudio } from './kept-audio.ts';
import { openLiveSpeech, type ReadClause, type TextReader } from './live-speech.ts';
import { engineRefusal, type ReadScript, scriptOf } from './speech-refusals.ts';
import { closeStream, openStream, type StreamEnding } from './stream-account.ts';
import { type SwitchedVoices, switchedVoices } from './switched-voices.ts';
import type { SpeakTextRequest, SynthesisStream, TtsDesk } from './tts-desk.ts';

export interface TtsDeskOptions {
  sql: Sql;
  synthesis: Pick<SpeechSynthesis, 'speak'>;
  voices: Pick<VoiceDesk, 'resolve'>;
  catalogue: Pick<VoiceCatalogue, 'languages'>;
  readScript: ReadScript;
  deliverer: Pick<Deliverer, 'enqueue'>;
  objects: Pick<ObjectStore, 'putFile'>;
  /** Folder for audio on its way into the store. */
  tempDir: string;
  /** Presigned URL of an object, valid until `expiresAt`. */
  audioUrl: (options: { key: string; expiresAt: Date }) => string;
  /** Owner of the requests. The node's next boot ends those that this one leaves behind. */
  node: string;
  boot: string;
  clock: Clock;
  logger: Logger;
}

interface LiveStream {
  id: string;
  request: SpeakTextRequest;
  voice: SpeakableVoice;
  switched: SwitchedVoices;
  script: Script;
  listening: AbortSignal;
  parts: Handover<SpokenPart>;
  charge: Charge | null;
  /** Audio for webhooks; null if no webhook wants it. */
  audio: KeptAudio | null;
  audioKey: string;
  durationMs: number;
  delivered: DeliveredText;
  hasDelivered: boolean;
  isEndReported: boolean;
  error: unknown;
}

/** Lifetime of audio kept for webhooks, and of its URLs. */
const AUDIO_KEPT_MS = 24 * 3_600_000;
/** Meanwhile the listener waits for the end or for the refund. */
const STORE_WITHIN_MS = 4_000;
/** Lost storage must not prevent shutdown. */
const CLOSE_WITHIN_MS = 5_000;

/** Provides the machine with its ports, once. Starts one actor for each text. */
export function createTtsDesk(options: TtsDeskOptions): TtsDesk {
  const { sql, synthesis, voices, catalogue, readScript, deliverer, clock, logger } = options;
  const live = new Map<string, LiveStream>();
  const over = new Set<Promise<unknown>>();
  let closed = false;

  const machine = ttsStreamMachine.provide({
    actors: {
      charge: fromPromise(async ({ input: { streamId } }) => {
        const stream = live.get(streamId)!;
        const { charge, keepsAudio } = await noting(stream, openStream(sql, newRow(stream)));
        stream.charge = charge;
        const { audioKey: key, request } = stream;
        if (keepsAudio) stream.audio = new KeptAudio({ ...options, key, format: request.format });
      }),
      speak: fromPromise(async ({ input: { streamId }, signal }) => {
        const stream = live.get(streamId)!;
        const { script, voice, switched, request } = stream;
        const { style, format } = request;
        const what = { script, recipe: voice.recipe, voices: switched.recipes, style, format };
        const spoken = synthesis.speak(what, signal);
        await noting(stream, stream.parts.sendAll(kept(stream, spoken), signal));
      }),
      settle: fromPromise(async ({ input: { streamId, ending } }) => {
        const stream = live.get(streamId)!;
        const now = new Date(clock.now());
        const row = { id: streamId, workspaceId: stream.request.workspaceId, voiceId: stream.voice.id };
        const stored = { ending: await storedEnding(stream, ending, now), now };
        const deliveries = await closeStream(sql, row, stored).catch((error: unknown) => {
          logger.warn({ streamId, err: error }, 'synthesis result could not be stored');
          throw error;
        });
        for (const id of deliveries) void deliverer.enqueue(id);
      }),
    },
  });

  return {
    languages: () => catalogue.languages(),

    speak,

    async openLive(request) {
      requireOpen();
      return await openLiveSpeech({ ...request, speak, readerFor });
    },

    async close() {
      closed = true;
      await within(Promise.allSettled(over), { ms: CLOSE_WITHIN_MS, clock });
      const streamIds = [...live.keys()];
      if (live.size > 0)
        logger.error({ streamIds }, 'how texts ended is not stored: the next start refunds what was not delivered');
    },
  };

  async function speak(request: SpeakTextRequest, listening: AbortSignal): Promise<SynthesisStream> {
    requireOpen();
    const { workspaceId, voiceId, text } = request;
    const voice = await voices.resolve({ workspaceId, voiceId, text });
    const switched = await switchedVoices(text, { workspaceId, voice, voices });
    const { language } = voice.recipe;
    const script = scriptOf(text, { language, voiceLanguages: switched.languages, readScript });
    requireOpen();
    listening.throwIfAborted();
    const id = `tts_${randomUUID()}`;
    const audioKey = `speech/${workspaceId}/${id}.${fileExtensionOf(request.format.encoding)}`;
    const stream: LiveStream = {
      ...{ id, request, voice, switched, script, listening, audioKey },
      ...{ parts: new Handover(), charge: null, audio: null, durationMs: 0 },
      delivered: deliveredOf(id, script),
      ...{ hasDelivered: false, isEndReported: false, error: null },
    };
    live.set(id, stream);
    start(stream);
    return await begun(stream);
  }

  async function readerFor({
    workspaceId,
    voiceId,
    text,
  }: Pick<SpeakTextRequest, 'workspaceId' | 'voiceId' | 'text'>): Promise<TextReader> {
    const { id, recipe } = await voices.resolve({ workspaceId, voiceId, text });
    const { language } = recipe;
    return {
      voiceId: id,
      clausesOf(read: string) {
        const wellFormed = read.toWellFormed();
        const { clauses } = readScript(wellFormed, { language });
        const words = clauses.flatMap((clause) => clause.words);
        const followedBy = (word: string) => readScript(`${wellFormed} ${word}`, { language }).clauses;
        const lastBefore = (word: string) => followedBy(word).flatMap((clause) => clause.words)[words.length - 1];
        // At the end of a text, "Dr.", "p.m.", "sq. ft." and "No." end a sentence. Before a name, a zone, a small letter
        // or a number they do not.
        const mayGoOn = () =>
          ['Rao', 'EST'].some((word) => (followedBy(word).at(-1)?.words.length ?? 0) > 1) ||
          lastBefore('ft')?.spoken !== words.at(-1)?.spoken ||
          !isReadAlike(lastBefore('5'), words.at(-1));
        let end = 0;
        return clauses.map((clause, index) => {
          for (const { written } of clause.words) end = wellFormed.indexOf(written, end) + written.length;
          const isOver = endsSentence(clause) && (index < clauses.length - 1 || !mayGoOn());
          return { ...readClause(clause), end, endsSentence: isOver };
        });
      },
    };
  }

  function requireOpen(): void {
    if (closed) throw shuttingDown();
  }

  function start(stream: LiveStream): void {
    const { id, listening, parts } = stream;
    const actor = createActor(machine, { input: { streamId: id }, clock });
    const ended = Promise.withResolvers<void>();
    let patience: unknown = null;
    const leave = () => {
      const ofOwnAccord = !isSentAway(listening.reason);
      actor.send({ type: 'listener.left', ofOwnAccord, hasReceivedAudio: stream.hasDelivered });
    };
    actor.subscribe({
      next({ value, context: { ending } }) {
        if (value !== 'settling' || ending === null || patience !== null) return;
        if (ending.outcome === 'abandoned' || stream.charge === null) reportEnd(stream, ending, { isStored: false });
        patience = clock.setTimeout(() => reportEnd(stream, ending, { isStored: false }), STORE_WITHIN_MS);
      },
      complete() {
        clock.clearTimeout(patience);
        listening.removeEventListener('abort', leave);
        stream.delivered.close();
        const ending = actor.getSnapshot().output ?? null;
        if (ending === null) parts.fail(stream.error);
        else reportEnd(stream, ending, { isStored: true });
        ended.resolve();
      },
      // A defect, not an outcome.
      error(error) {
        clock.clearTimeout(patience);
        listening.removeEventListener('abort', leave);
        stream.delivered.close();
        logger.error({ streamId: id, err: error }, 'synthesis actor failed');
        parts.fail(error);
        ended.resolve();
      },
    });
    const removed = ended.promise.then(() => {
      live.delete(id);
      over.delete(removed);
    });
    over.add(removed);
    actor.start();
    listening.addEventListener('abort', leave, { once: true });
  }

  function reportEnd(stream: LiveStream, ending: TtsStreamEnding, { isStored }: { isStored: boolean }): void {
    const { id, parts, listening, charge, error } = stream;
    if (stream.isEndReported) return;
    stream.isEndReported = true;
    if (ending.outcome === 'completed') parts.finish();
    else if (listening.aborted) parts.fail(listening.reason);
    else if (charge === null) parts.fail(error);
    else {
      logger.warn({ streamId: id, err: error }, 'synthesis request failed');
      parts.fail(engineRefusal(error, { isRefunded: isStored }));
    }
  }

  function deliveredOf(id: string, { characters }: Script): DeliveredText {
    return new DeliveredText({
      ...{ characters, clock },
      async save(delivered) {
        await setDeliveredCharacters(sql, { id, characters: delivered }).catch((error: unknown) => {
          logger.warn({ streamId: id, err: error }, 'how much of a text was delivered could not be stored');
        });
      },
    });
  }

  function newRow({ id, request, voice, script, audioKey }: LiveStream) {
    const { workspaceId, userId, apiKeyId } = request;
    const owner = { workspaceId, userId, apiKeyId, ownerNode: options.node, ownerBoot: options.boot };
    const what = { voiceId: voice.id, characters: script.characters, audioKey };
    return { id, ...owner, ...what, createdAt: new Date(clock.now()) };
  }

  /** Passes audio through and keeps a copy for webhooks, if any wants it. */
  async function* kept(stream: LiveStream, spoken: AsyncIterable<SpokenPart>): AsyncGenerator<SpokenPart, void> {
    for await (const part of spoken) {
      stream.durationMs = part.durationMs;
      await stream.audio?.append(part.audio).catch((error: unknown) => {
        stream.audio = null;
        logger.warn({ streamId: stream.id, err: error }, 'synthesised audio could not be stored');
      });
      yield part;
    }
    if (stream.durationMs === 0) throw new SynthesizerError('crashed', 'the speech engine said nothing');
  }

  async function storedEnding(stream: LiveStream, ending: TtsStreamEnding, now: Date): Promise<StreamEnding> {
    const { id, request, voice, durationMs, audioKey: key } = stream;
    if (ending.outcome !== 'completed') {
      await stream.audio?.discard().catch((error: unknown) => {
        logger.warn({ streamId: id, err: error }, 'temporary audio could not be removed');
      });
      if (ending.outcome === 'abandoned') return { outcome: 'abandoned', owes: ending.owes };
      return { outcome: 'failed', error: failureOf(stream), refunds: 'all' };
    }
    const isKept = await stream.audio?.store().catch((error: unknown) => {
      stream.audio = null;
      logger.warn({ streamId: id, err: error }, 'synthesised audio could not be stored');
    });
    const audioExpiresAt = new Date(now.getTime() + AUDIO_KEPT_MS);
    const audioUrl = isKept ? options.audioUrl({ key, expiresAt: audioExpiresAt }) : null;
    const webhookData = {
      id,
      text: request.text,
      voice_id: voice.id,
      audio_url: audioUrl,
      duration: seconds(durationMs),
    };
    return { outcome: 'completed', durationMs, webhookData, audioExpiresAt };
  }
}

/** "No." is "number" before one. The full stop of another word may be lost, which changes nothing. */
function isReadAlike(one: ScriptWord | undefined, other: ScriptWord | undefined): boolean {
  const bare = (word: ScriptWord | undefined) => word?.spoken.replace(/\p{P}+$/u, '');
  return bare(one) === bare(other);
}

function readClause(clause: ScriptClause): Pick<ReadClause, 'isSayable' | 'pauseAfterMs'> {
  return {
    isSayable: clause.words.some(({ spoken, phonemes }) => spoken !== '' || phonemes !== null),
    pauseAfterMs: pauseAfterMs(clause),
  };
}

/**
 * Whether the server ended the request, so that nothing is owed. Ended credentials do not count; otherwise revoking a
 * key at the last word would make the text free.
 */
function isSentAway(reason: unknown): boolean {
  return reason instanceof TandemError && reason.code !== 'UNAUTHORIZED';
}

/** Error code for webhooks. */
function failureOf({ listening, error }: LiveStream): string {
  if (listening.aborted && listening.reason instanceof TandemError) return listening.reason.code;
  return engineRefusal(error, { isRefunded: true }).code;
}

/** Waits for the first sound and rejects with the reason if there is none. */
async function begun(stream: LiveStream): Promise<SynthesisStream> {
  const inHand: SpokenPart[] = [];
  for (;;) {
    const part = await stream.parts.peek();
    // A first part without duration is only a file header. Sound stays on offer until the listener takes it: a text of
    // one part would be complete otherwise, whether the listener is still there or not.
    if (part === null || (part.audio.byteLength > 0 && part.durationMs > 0)) break;
    inHand.push(part);
    await stream.parts.take();
  }
  if (stream.charge === null) throw new Error('synthesised a text without a charge');
  async function* parts(): AsyncGenerator<SpokenPart, void> {
    // Sound on offer when the listener left is refunded.
    stream.listening.throwIfAborted();
    stream.hasDelivered = true;
    for (const part of inHand.splice(0)) yield* delivering(part);
    for (let part = await stream.parts.take(); part !== null; part = await stream.parts.take()) yield* delivering(part);
  }
  /** Counts a part as delivered when the consumer asks for the next one. */
  function* delivering(part: SpokenPart): Generator<SpokenPart, void> {
    yield part;
    stream.delivered.add(part.words);
  }
  const { id: streamId, charge, script, voice } = stream;
  return { streamId, voiceId: voice.id, characters: script.characters, charge, parts: parts() };
}

async function noting<T>(stream: LiveStream, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    stream.error = error;
    throw error;
  }
}
