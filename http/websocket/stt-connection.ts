import type { RawData, WebSocket } from 'ws';
import type { LiveSession, LiveStt } from '../../actors/stt/live-stt.ts';
import { TandemError } from '../../machines/errors.ts';
import type { AudioFormat } from '../../machines/utterances.ts';
import type { HttpContext } from '../context.ts';
import { endWithCredentials } from '../credential-watch.ts';
import { toRefusal } from '../refusals.ts';
import { nanoToUsd } from '../schemas/money.ts';
import { createAllowance } from './allowance.ts';
import { type ClientMessage, readClientMessage, UnknownMessageType } from './client-messages.ts';
import { type KeepAliveTimes, keepAlive } from './keep-alive.ts';
import { createOutlet, type Outlet } from './outlet.ts';
import { MAX_LANGUAGES } from './session-settings.ts';
import { type Admitted, admitToStt, errorMessageOf } from './stt-admission.ts';

export type SttConnectionContext = Pick<
  HttpContext,
  'sql' | 'sessionTokens' | 'limits' | 'logger' | 'now' | 'heartbeatMs' | 'revocations'
> & { liveStt: LiveStt };

export interface SttConnectionOptions {
  context: SttConnectionContext;
  /** Of the URL: it has the credentials. */
  query: URLSearchParams;
  address: string;
  /** Aborted when the server closes. */
  closing: AbortSignal;
  times: KeepAliveTimes;
  mostBufferedBytes?: number;
}

/**
 * Serves one client from the upgrade on: tells it how its admission goes, opens a session for it, hands over what it
 * sends, and passes on what the session says. Resolves when neither the connection nor anything of the session is left.
 */
export async function serveSttConnection(socket: WebSocket, options: SttConnectionOptions): Promise<void> {
  const { context, closing, times, mostBufferedBytes } = options;
  const gone = new AbortController();
  const outlet = createOutlet(socket, { ...(mostBufferedBytes !== undefined && { mostBufferedBytes }) });
  let session: LiveSession | null = null;
  const hear = listenerOf(outlet);
  socket.on('error', () => {
    // What is against RFC 6455 or too large: ws closes the connection and says so.
  });
  const left = Promise.withResolvers<void>();
  socket.on('close', () => {
    gone.abort();
    left.resolve();
  });
  const frames = createAllowance(FRAMES);
  socket.on('message', (data, isBinary) => {
    // What comes before the session is there is dropped (platform specification, Ordering rule 1).
    if (frames.take()) session && hear(session, data, isBinary);
    else if (socket.readyState === socket.OPEN) {
      // Reading on would keep the process from everything else.
      socket.pause();
      cutOff(outlet, session, 'Too many frames.');
    }
  });
  keepAlive(socket, times, gone.signal);
  outlet.tell({ type: 'connecting', message: 'Checking credentials.', timestamp: Date.now() });

  try {
    const admitted = await admitToStt(options.query, options);
    await using _slot = await context.limits.acquireSlot({ userId: admitted.principal.userId, kind: 'stt' });
    if (gone.signal.aborted) return;
    if (closing.aborted) throw new TandemError('SHUTTING_DOWN', 'The server is shutting down. Connect again shortly.');
    welcome(outlet, admitted, context.liveStt);
    session = openSession(outlet, admitted, context);
    endWhenDue(session, { ...options, admitted, gone: gone.signal });
    await session.ended;
  } catch (error) {
    refuse(error);
  }
  // A client that answers no close is cut off.
  await left.promise;

  function refuse(error: unknown): void {
    const refusal = toRefusal(error);
    if (refusal.status === 500) context.logger.error({ err: refusal.cause ?? refusal }, 'a live transcription failed');
    const message = errorMessageOf(refusal);
    outlet.tell(message);
    outlet.close(refusal.code === 'SHUTTING_DOWN' ? 1012 : refusal.status < 500 ? 1008 : 1011, message.code);
  }
}

function welcome(outlet: Outlet, { principal, availableNano }: Admitted, liveStt: LiveStt): void {
  outlet.tell({ type: 'connected', message: 'Connected.', timestamp: Date.now() });
  outlet.tell({
    type: 'connection_established',
    service: 'stt',
    user_id: principal.userId,
    credit_balance: nanoToUsd(availableNano),
    workspace: principal.workspaceId,
  });
  outlet.tell({
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
    onMessage: (message) => outlet.tell(message),
    onClosed: ({ code, reason }) => outlet.close(code, reason),
  });
}

/** The client may go, its credentials may end, the server may close: the session ends with any of them. */
function endWhenDue(
  session: LiveSession,
  { context, admitted, gone, closing }: SttConnectionOptions & { admitted: Admitted; gone: AbortSignal },
): void {
  const credentials = new AbortController();
  endWithCredentials(context, { principal: admitted.principal, ended: credentials });
  const over = new AbortController();
  const whenever = (signal: AbortSignal, reason: Parameters<LiveSession['end']>[0]) => {
    signal.addEventListener('abort', () => session.end(reason), { once: true, signal: over.signal });
  };
  whenever(gone, 'disconnected');
  whenever(closing, 'shutdown');
  whenever(credentials.signal, 'credentials');
  void session.ended.then(() => {
    over.abort();
    // Nobody watches them any more.
    credentials.abort();
  });
}

/** Raw binary frames are what telephones send. */
const TELEPHONY: AudioFormat = { encoding: 'mulaw', sampleRateHz: 8_000, channels: 1 };

/** Of all; a minute ahead in frames of 5 ms. */
const FRAMES = { atOnce: 12_000, perSecond: 1_000 };
/** Of messages that make no sense, and of those that are no audio: a client that goes on and on is cut off. */
const FAULTS = { atOnce: 60, perSecond: 1 };
const COMMANDS = { atOnce: 100, perSecond: 10 };
/** Of answers to audio that comes too early: a microphone may well be on already while recognition starts. */
const EARLY_AUDIO = { atOnce: 60, perSecond: 1 };

function cutOff(outlet: Outlet, session: LiveSession | null, message: string): void {
  outlet.tell({ type: 'error', code: 'RATE_LIMITED', message });
  outlet.close(1008, 'RATE_LIMITED');
  // Nothing more can be told, so nothing more may be billed.
  session?.end('disconnected');
}

/** Takes the frames of one client. */
function listenerOf(outlet: Outlet) {
  const faults = createAllowance(FAULTS);
  const commands = createAllowance(COMMANDS);
  const earlyAudio = createAllowance(EARLY_AUDIO);

  function refuse(session: LiveSession, error: unknown): void {
    if (!faults.take()) cutOff(outlet, session, 'Too many messages that make no sense.');
    else if (error instanceof UnknownMessageType) tellUnknown(error);
    else outlet.tell(errorMessageOf(toRefusal(error)));
  }

  function tellUnknown({ message }: UnknownMessageType): void {
    outlet.tell({ type: 'error', code: 'unknown_message_type', message });
  }

  function take(session: LiveSession, bytes: Uint8Array<ArrayBuffer>, format: AudioFormat): void {
    if (session.audio(bytes, format) || !earlyAudio.take()) return;
    tellUnknown(new UnknownMessageType('unknown message type: audio'));
  }

  function hearText(session: LiveSession, message: ClientMessage): void {
    if (message.type === 'audio') take(session, message.bytes, message.format);
    else if (!commands.take()) cutOff(outlet, session, 'Too many messages.');
    else if (message.type === 'test') outlet.tell({ type: 'test_response', timestamp: message.timestamp });
    else session.send(message);
  }

  return (session: LiveSession, data: RawData, isBinary: boolean): void => {
    // One Buffer, as the server's `binaryType` has it.
    const frame = data as Buffer;
    try {
      // It may be part of a larger one, and the listener takes over the whole.
      if (isBinary) take(session, new Uint8Array(frame), TELEPHONY);
      else hearText(session, readClientMessage(frame.toString()));
    } catch (error) {
      refuse(session, error);
    }
  };
}
