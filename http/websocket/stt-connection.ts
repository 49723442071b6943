import type { RawData, WebSocket } from 'ws';
import type { LiveSession, LiveStt } from '../../actors/stt/live-stt.ts';
import { TandemError } from '../../machines/errors.ts';
import type { AudioFormat } from '../../machines/utterances.ts';
import { nanoToUsd } from '../../runtime/money.ts';
import type { HttpContext } from '../context.ts';
import { abortWithCredentials } from '../credential-watch.ts';
import { toRefusal } from '../refusals.ts';
import { type ClientMessage, readClientMessage, UnknownMessageType } from './client-messages.ts';
import { departureOf } from './departure.ts';
import { type KeepAliveTimes, keepAlive } from './keep-alive.ts';
import { createOutlet, type Outlet } from './outlet.ts';
import { MAX_LANGUAGES } from './session-settings.ts';
import {
  type AdmissionContext,
  type Admitted,
  admitToSocket,
  closeWithRefusal,
  errorMessageOf,
  type SocketCredentials,
} from './socket-admission.ts';
import { createTokenBucket } from './token-bucket.ts';

export type SttConnectionContext = AdmissionContext &
  Pick<HttpContext, 'heartbeatMs' | 'revocations'> & { liveStt: LiveStt };

export interface SttConnectionOptions {
  context: SttConnectionContext;
  credentials: SocketCredentials;
  address: string;
  closing: AbortSignal;
  times: KeepAliveTimes;
  maxBufferedBytes?: number;
}

/**
 * Serves one client: reports its admission, opens a session and relays messages in both directions. Resolves when the
 * connection and the session have ended.
 */
export async function serveSttConnection(socket: WebSocket, options: SttConnectionOptions): Promise<void> {
  const { context, closing, times, maxBufferedBytes } = options;
  const outlet = createOutlet(socket, { ...(maxBufferedBytes !== undefined && { maxBufferedBytes }) });
  let session: LiveSession | null = null;
  const handleFrame = frameHandler(outlet);
  const { gone, left } = departureOf(socket);
  const frames = createTokenBucket(FRAMES);
  socket.on('message', (data, isBinary) => {
    // Drop frames before the session exists (platform specification, Ordering rule 1).
    if (frames.take()) session && handleFrame(session, data, isBinary);
    else if (socket.readyState === socket.OPEN) {
      // Reading on would starve everything else in the process.
      socket.pause();
      cutOff(outlet, session, 'Too many frames. Send fewer per second.');
    }
  });
  keepAlive(socket, times, gone);
  outlet.send({ type: 'connecting', message: 'Checking credentials.', timestamp: Date.now() });

  try {
    const admitted = await admitToSocket(options.credentials, { ...options, service: 'stt' });
    await using _slot = await context.limits.acquireSlot({ userId: admitted.principal.userId, kind: 'stt' });
    if (gone.aborted) return;
    if (closing.aborted) throw new TandemError('SHUTTING_DOWN', 'The server is shutting down. Reconnect shortly.');
    welcome(outlet, admitted, context.liveStt);
    session = openSession(outlet, admitted, context);
    endSessionOnAbort(session, { ...options, admitted, gone });
    await session.ended;
  } catch (error) {
    closeWithRefusal(outlet, error, { logger: context.logger, failure: 'live transcription failed' });
  }
  // The ws library terminates a client that does not answer the close.
  await left;
}

function welcome(outlet: Outlet, { principal, availableNano }: Admitted, liveStt: LiveStt): void {
  outlet.send({ type: 'connected', message: 'Connected.', timestamp: Date.now() });
  outlet.send({
    type: 'connection_established',
    service: 'stt',
    user_id: principal.userId,
    credit_balance: nanoToUsd(availableNano),
    workspace: principal.workspaceId,
  });
  outlet.send({
    type: 'connected',
    server_info: {
      server_type: 'tandem',
      ready: true,
      total_languages: liveStt.languages().length,
      features: {
        vad_segmentation: true,
        multi_language_per_session: true,
        max_languages_per_session: MAX_LANGUAGES,
        telephony_mulaw: true,
        browser_pcm: true,
        continuous_mode: true,
        interim_results: true,
      },
    },
  });
}

function openSession(outlet: Outlet, { principal }: Admitted, { liveStt }: SttConnectionContext): LiveSession {
  const { workspaceId, userId, apiKeyId, plan } = principal;
  return liveStt.open({
    workspaceId,
    userId,
    apiKeyId,
    mayRefine: plan !== 'free',
    onMessage: (message) => outlet.send(message),
    onClosed: ({ code, reason }) => outlet.close(code, reason),
  });
}

/** Ends the session if the client disconnects, its credentials end or the server closes. */
function endSessionOnAbort(
  session: LiveSession,
  { context, admitted, gone, closing }: SttConnectionOptions & { admitted: Admitted; gone: AbortSignal },
): void {
  const credentials = new AbortController();
  abortWithCredentials(context, { principal: admitted.principal, ended: credentials });
  const over = new AbortController();
  const whenever = (signal: AbortSignal, reason: Parameters<LiveSession['end']>[0]) => {
    signal.addEventListener('abort', () => session.end(reason), { once: true, signal: over.signal });
  };
  whenever(gone, 'disconnected');
  whenever(closing, 'shutdown');
  whenever(credentials.signal, 'credentials');
  void session.ended.then(() => {
    over.abort();
    credentials.abort();
  });
}

/** Format of raw binary frames from telephony clients. */
const TELEPHONY: AudioFormat = { encoding: 'mulaw', sampleRateHz: 8_000, channels: 1 };

/** For all frames: allows a minute of audio in advance, in frames of 5 ms. */
const FRAMES = { capacity: 12_000, perSecond: 1_000 };
/** For invalid messages and audio. A client that keeps sending them is disconnected. */
const FAULTS = { capacity: 60, perSecond: 1 };
const COMMANDS = { capacity: 100, perSecond: 10 };
/** For error messages about early audio, because a microphone may be on before the session starts. */
const EARLY_AUDIO = { capacity: 60, perSecond: 1 };

function cutOff(outlet: Outlet, session: LiveSession | null, message: string): void {
  outlet.send({ type: 'error', code: 'RATE_LIMITED', message });
  outlet.close(1008, 'RATE_LIMITED');
  // Results cannot be delivered, so bill nothing more.
  session?.end('disconnected');
}

function frameHandler(outlet: Outlet) {
  const faults = createTokenBucket(FAULTS);
  const commands = createTokenBucket(COMMANDS);
  const earlyAudio = createTokenBucket(EARLY_AUDIO);

  function refuse(session: LiveSession, error: unknown): void {
    if (!faults.take()) cutOff(outlet, session, 'Too many invalid messages.');
    else if (error instanceof UnknownMessageType) sendUnknownType(error);
    else outlet.send(errorMessageOf(toRefusal(error)));
  }

  function sendUnknownType({ message }: UnknownMessageType): void {
    outlet.send({ type: 'error', code: 'unknown_message_type', message });
  }

  function take(session: LiveSession, bytes: Uint8Array<ArrayBuffer>, format: AudioFormat): void {
    if (session.audio(bytes, format) || !earlyAudio.take()) return;
    sendUnknownType(new UnknownMessageType('unknown message type: audio'));
  }

  function handleMessage(session: LiveSession, message: ClientMessage): void {
    if (message.type === 'audio') take(session, message.bytes, message.format);
    else if (!commands.take()) cutOff(outlet, session, 'Too many messages. Send fewer per second.');
    else if (message.type === 'test') outlet.send({ type: 'test_response', timestamp: message.timestamp });
    else session.send(message);
  }

  return (session: LiveSession, data: RawData, isBinary: boolean): void => {
    // Always a single Buffer, because of the server's `binaryType`.
    const frame = data as Buffer;
    try {
      // Copy it: it may be part of a larger buffer, and the listener takes ownership.
      if (isBinary) take(session, new Uint8Array(frame), TELEPHONY);
      else handleMessage(session, readClientMessage(frame.toString()));
    } catch (error) {
      refuse(session, error);
    }
  };
}
