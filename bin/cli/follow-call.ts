import { setTimeout as pause } from 'node:timers/promises';
import type { PublicCall } from '../../actors/call-view.ts';
import { type Api, ApiError, type CallEvent } from './api-client.ts';
import { eventLines } from './event-lines.ts';
import type { CommandHost } from './host.ts';
import type { Terminal } from './terminal.ts';

export interface FollowOptions {
  callId: string;
  terminal: Terminal;
  host: Pick<CommandHost, 'on' | 'off'>;
  /**
   * True: the first Ctrl-C hangs up and waits for the end, the second leaves. False: the first leaves. Default true.
   */
  hangUpOnInterrupt?: boolean;
}

export interface Followed {
  /** The call when following ended. */
  final: PublicCall;
  events: CallEvent[];
  /** The user left before the end. */
  left: boolean;
}

/** Delay and limit of consecutive reconnects to an unreachable server. */
const RETRY_MS = 500;
const MAX_RETRIES = 20;

/** Prints a call's events as they happen, until the terminal one. Reconnects when the server restarts. */
export async function followCall(
  api: Api,
  { callId, terminal, host, hangUpOnInterrupt = true }: FollowOptions,
): Promise<Followed> {
  const lineOf = eventLines(terminal);
  const events: CallEvent[] = [];
  using interruptions = countInterruptions(host, (count) => {
    if (count > 1 || !hangUpOnInterrupt) return 'leave';
    terminal.line('Hanging up; Ctrl-C again leaves.');
    api.post(`/dialer/click2call/${callId}/hangup`).catch((error: Error) => terminal.line(error.message));
    return 'stay';
  });

  const reading = new AbortController();

  async function read(): Promise<PublicCall> {
    const { signal } = reading;
    for (let retries = 0; ; retries += 1) {
      try {
        const afterSequence = events.at(-1)?.sequence ?? 0;
        for await (const event of api.events(callId, { afterSequence, signal })) {
          retries = 0;
          events.push(event);
          terminal.line(lineOf(event));
          if (!TERMINAL.test(event.event)) terminal.progress(`${event.state} ...`);
        }
        const call = await current();
        if (call.call_done) return call;
        if (retries >= MAX_RETRIES)
          throw new ApiError('UNREACHABLE', `the server keeps ending the stream of ${callId}.`);
      } catch (error) {
        if (!isPassing(error) || retries >= MAX_RETRIES) throw error;
      }
      await pause(RETRY_MS, undefined, { signal });
    }
  }

  async function current(): Promise<PublicCall> {
    return (await api.get<{ call: PublicCall }>(`/dialer/click2call/${callId}?refresh=1`)).call;
  }

  const final = await Promise.race([read(), interruptions.left.then(() => null)]).finally(() => reading.abort());
  return { final: final ?? (await current()), events, left: final === null };
}

const TERMINAL = /^call\.(completed|not_answered|failed|temporaryfailed)$/;

/** No server, a broken stream (a TypeError of fetch), or a server that is not ready. */
function isPassing(error: unknown): boolean {
  if (error instanceof ApiError) return error.status === null || error.status >= 500;
  return error instanceof TypeError;
}

function countInterruptions(host: FollowOptions['host'], onInterrupt: (count: number) => 'stay' | 'leave') {
  const left = Promise.withResolvers<void>();
  let count = 0;
  const listener = () => {
    count += 1;
    if (onInterrupt(count) === 'leave') left.resolve();
  };
  host.on('SIGINT', listener);
  host.on('SIGTERM', listener);
  return {
    left: left.promise,
    [Symbol.dispose]() {
      host.off('SIGINT', listener);
      host.off('SIGTERM', listener);
    },
  };
}
