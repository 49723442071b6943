import type { RawData, WebSocket } from 'ws';
import type { LiveSpeech, LiveSpeechListener, TtsDesk } from '../../actors/tts/tts-desk.ts';
import { TandemError } from '../../machines/errors.ts';
import { nanoToUsd } from '../../runtime/money.ts';
import { USUAL_STYLE } from '../../speech/voices/voice-recipe.ts';
import type { HttpContext } from '../context.ts';
import { abortWithCredentials } from '../credential-watch.ts';
import { toRefusal } from '../refusals.ts';
import { UnknownMessageType } from './client-messages.ts';
import { departureOf } from './departure.ts';
import { type KeepAliveTimes, keepAlive } from './keep-alive.ts';
import { createOutlet, type Outlet } from './outlet.ts';
import {
  type AdmissionContext,
  type Admitted,
  admitToSocket,
  closeWithRefusal,
  errorMessageOf,
  type SocketCredentials,
} from './socket-admission.ts';
import { createTokenBucket } from './token-bucket.ts';
import { readTtsMessage, readTtsQuery, type TtsMessage, type TtsQuery } from './tts-messages.ts';

export type TtsConnectionContext = AdmissionContext &
  Pick<HttpContext, 'heartbeatMs' | 'revocations' | 'stallTimeoutMs'> & { speech: Pick<TtsDesk, 'openLive'> };

export interface TtsSocketTimes extends KeepAliveTimes {
  /** Disconnects a client that sends nothing for this long. Default 300 000. */
  idleMs?: number;
}

export interface TtsConnectionOptions {
  context: TtsConnectionContext;
  credentials: SocketCredentials;
  query: URLSearchParams;
  address: string;
  closing: AbortSignal;
  times: TtsSocketTimes;
}

/** For all frames: models produce some hundred tokens a second. */
const FRAMES = { capacity: 2_000, perSecond: 500 };
/** For invalid messages. A client that keeps sending them is disconnected. */
const FAULTS = { capacity: 20, perSecond: 1 };
const IDLE_MS = 300_000;

/** Serves one client of `/ws/tts`. Resolves when the connection and its speech have ended. */
export async function serveTtsConnection(socket: WebSocket, options: TtsConnectionOptions): Promise<void> {
  const { context, closing, times } = options;
  const outlet = createOutlet(socket);
  const { gone, left } = departureOf(socket);
  let audioAtMs = Number.NEGATIVE_INFINITY;
  // The client may play the audio before it reads on.
  const mayPlay = () => performance.now() - audioAtMs < context.stallTimeoutMs;
  keepAlive(socket, times, gone, () => (mayPlay() ? context.stallTimeoutMs : 0));
  const onAudioSent = () => {
    audioAtMs = performance.now();
  };
  try {
    const query = readTtsQuery(options.query);
    const admitted = await admitToSocket(options.credentials, { ...options, service: 'tts' });
    await using _slot = await context.limits.acquireSlot({ userId: admitted.principal.userId, kind: 'tts' });
    const speech = await openSpeech(socket, { context, outlet, query, admitted, onAudioSent });
    if (gone.aborted) return;
    if (closing.aborted) throw shuttingDown();
    outlet.send(metadataOf(query, admitted));
    await converse(speech, { ...options, socket, outlet, admitted, gone });
    outlet.close(closing.aborted ? 1012 : 1000, closing.aborted ? 'SHUTTING_DOWN' : '');
  } catch (error) {
    closeWithRefusal(outlet, error, { logger: context.logger, failure: 'streamed synthesis failed' });
  }
  // The ws library terminates a client that does not answer the close.
  await left;
}

function metadataOf({ voiceId, format }: TtsQuery, { availableNano }: Admitted) {
  return {
    type: 'Metadata',
    voice_id: voiceId,
    audio_encoding: format.encoding,
    sample_rate_hertz: format.sampleRateHz,
    credit_balance: nanoToUsd(availableNano),
  };
}

interface Opening extends Pick<TtsConnectionOptions, 'context'> {
  outlet: Outlet;
  query: TtsQuery;
  admitted: Admitted;
  onAudioSent: () => void;
}

async function openSpeech(
  socket: WebSocket,
  { context, outlet, query, admitted, onAudioSent }: Opening,
): Promise<LiveSpeech> {
  const { workspaceId, userId, apiKeyId } = admitted.principal;
  const { voiceId, format, speed } = query;
  return await context.speech.openLive({
    ...{ workspaceId, userId, apiKeyId, voiceId, format, style: { ...USUAL_STYLE, speed } },
    listener: listenerOf(socket, { outlet, stallTimeoutMs: context.stallTimeoutMs, onAudioSent }),
  });
}

interface Conversation extends TtsConnectionOptions {
  socket: WebSocket;
  outlet: Outlet;
  admitted: Admitted;
  gone: AbortSignal;
}

/** Resolves when the client has closed and all text was synthesised. @throws the error that ended the speech */
async function converse(speech: LiveSpeech, conversation: Conversation): Promise<void> {
  const { context, socket, outlet, admitted, gone, closing, times } = conversation;
  const over = new AbortController();
  const whenever = (signal: AbortSignal, act: () => void) => {
    if (signal.aborted) act();
    else signal.addEventListener('abort', act, { once: true, signal: over.signal });
  };
  const credentials = new AbortController();
  abortWithCredentials(context, { principal: admitted.principal, ended: credentials });
  let revoked: TandemError | null = null;
  whenever(gone, () => speech.end('disconnected'));
  whenever(closing, () => speech.finish());
  whenever(credentials.signal, () => {
    revoked = new TandemError('UNAUTHORIZED', 'The credentials are not valid any more.');
    speech.end(revoked);
  });
  const idle = setTimeout(() => speech.finish(), times.idleMs ?? IDLE_MS);
  const handle = messageHandler(speech, { socket, outlet });
  const onMessage = (data: RawData, isBinary: boolean) => {
    idle.refresh();
    handle(data, isBinary);
  };
  socket.on('message', onMessage);
  try {
    await speech.ended;
    if (revoked !== null) throw revoked;
  } finally {
    clearTimeout(idle);
    socket.off('message', onMessage);
    over.abort();
    credentials.abort();
  }
}

function listenerOf(
  socket: WebSocket,
  { outlet, stallTimeoutMs, onAudioSent }: { outlet: Outlet; stallTimeoutMs: number; onAudioSent: () => void },
): LiveSpeechListener {
  return {
    onAudio(audio) {
      if (socket.readyState !== socket.OPEN) return Promise.resolve();
      // Otherwise a client that does not read would hold a slot and an engine.
      const stalled = setTimeout(() => socket.terminate(), stallTimeoutMs);
      return new Promise((resolve) => {
        socket.send(audio, () => {
          clearTimeout(stalled);
          onAudioSent();
          resolve();
        });
      });
    },
    onWords: (words) => outlet.send({ type: 'Words', words }),
    onCharge: ({ characters, charge, voiceId }) =>
      outlet.send({ type: 'Charged', characters, cost_usd: nanoToUsd(charge.chargedNano), voice_id: voiceId }),
    onFlushed: (sequenceId) => outlet.send({ type: 'Flushed', sequence_id: sequenceId }),
    onCleared: (sequenceId) => outlet.send({ type: 'Cleared', sequence_id: sequenceId }),
  };
}

function messageHandler(speech: LiveSpeech, { socket, outlet }: { socket: WebSocket; outlet: Outlet }) {
  const frames = createTokenBucket(FRAMES);
  const faults = createTokenBucket(FAULTS);

  function cutOff(message: string): void {
    // Reading on would starve everything else in the process.
    socket.pause();
    outlet.send({ type: 'error', code: 'RATE_LIMITED', message });
    outlet.close(1008, 'RATE_LIMITED');
    speech.end('disconnected');
  }

  function execute(message: TtsMessage): void {
    if (message.type === 'Speak') speech.say(message.text);
    else if (message.type === 'Flush') speech.flush();
    else if (message.type === 'Clear') speech.clear();
    else if (message.type === 'Close') speech.finish();
  }

  return (data: RawData, isBinary: boolean): void => {
    if (socket.readyState !== socket.OPEN) return;
    if (!frames.take()) {
      cutOff('Too many frames. Send fewer per second.');
      return;
    }
    try {
      execute(readTtsMessage(isBinary ? '' : (data as Buffer).toString()));
    } catch (error) {
      if (!faults.take()) cutOff('Too many invalid messages.');
      else if (error instanceof UnknownMessageType) {
        outlet.send({ type: 'error', code: 'unknown_message_type', message: error.message });
      } else outlet.send(errorMessageOf(toRefusal(error)));
    }
  };
}

function shuttingDown(): TandemError {
  return new TandemError('SHUTTING_DOWN', 'The server is shutting down. Reconnect shortly.');
}
