import { apiIn, dataOf } from '../app/api.ts';
import { ApiError } from '../app/api-error.ts';
import { phoneText } from '../text/phone.ts';
import type { Notice, SendRequest } from './phone-messages.ts';
import { openPhoneSocket, PhoneRefusal, type PhoneSocket, SocketLost } from './phone-socket.ts';
import type { PhoneProblem, Purpose } from './phone-state.ts';

interface PhoneLinkOptions {
  purpose: Purpose;
  /** Stays the same when the page switches to another workspace. */
  workspaceId: string | null;
  /** Rings only for this call. Null: all calls. */
  callId: string | null;
  /** From before a reload. */
  resumeToken: string | null;
  onNotice: (notice: Notice) => void;
  /** The socket is lost and being reopened. */
  onInterrupted: () => void;
  /** The server no longer knows this phone, so its call is over. A new phone connects. */
  onForgotten: () => void;
  /** The phone is off, and a retry would not help. */
  onRefused: (problem: PhoneProblem) => void;
}

const FIRST_RETRY_MS = 200;
/** Well below the ten seconds that the server waits for a phone. */
const SLOWEST_RESUME_MS = 1_000;
const SLOWEST_RETRY_MS = 10_000;

/** Keeps a phone connected. New sockets resume the phone while the server waits for it. */
export class PhoneLink {
  readonly #options: PhoneLinkOptions;
  #resumeToken: string | null;
  #socket: PhoneSocket | null = null;
  #welcomed = Promise.withResolvers<void>();
  #isWelcomed = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #retryMs = FIRST_RETRY_MS;
  #isOver = false;
  readonly #wake = () => {
    clearTimeout(this.#timer);
    if (this.#socket === null && !this.#isOver) void this.#open();
  };

  constructor(options: PhoneLinkOptions) {
    this.#options = options;
    this.#resumeToken = options.resumeToken;
    this.#welcomed.promise.catch(() => {});
    addEventListener('online', this.#wake);
    void this.#open();
  }

  /** Waits while the socket is lost. @throws PhoneRefusal, SocketLost */
  readonly request: SendRequest = async (type, fields) => {
    await this.#welcomed.promise;
    if (this.#socket === null) throw new SocketLost(phoneText.connectionLost);
    return await this.#socket.request(type, fields);
  };

  /** Ends a call. False: the server does not know it, so no end will be reported. */
  async end({ callId, isRinging }: { callId: string; isRinging: boolean }): Promise<boolean> {
    try {
      await this.request(isRinging ? 'decline' : 'hangup', { call_id: callId });
    } catch (error) {
      if (!(error instanceof PhoneRefusal)) return true;
      if (error.code === 'CALL_NOT_LIVE') return false;
      // Another node did not answer. The phone asks again over its next socket, and without one the server ends the call.
      this.#socket?.close();
      this.#closed(1006, error.code);
    }
    return true;
  }

  /** Disconnects the phone and ends its call. */
  close(): void {
    this.#socket?.request('bye', {}).catch(() => {});
    this.#end();
  }

  #end(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    removeEventListener('online', this.#wake);
    // The `bye` frame precedes the close frame.
    this.#socket?.close();
    this.#socket = null;
    this.#welcomed.reject(new SocketLost(phoneText.connectionLost));
  }

  async #open(): Promise<void> {
    const resume = this.#resumeToken;
    try {
      const query: Record<string, string> = resume === null ? { token: await this.#mint() } : { resume };
      if (this.#isOver || this.#socket !== null) return;
      this.#socket = openPhoneSocket({
        query,
        onNotice: (notice) => this.#receive(notice),
        onClose: (code, reason) => this.#closed(code, reason),
      });
    } catch (error) {
      if (this.#isOver) return;
      if (error instanceof ApiError && isFinal(error)) this.#refuse({ code: error.code, message: error.message });
      else this.#retry();
    }
  }

  async #mint(): Promise<string> {
    const { purpose, workspaceId, callId } = this.#options;
    const body = { purpose, ...(callId !== null && { call_id: callId }) };
    return (await dataOf(apiIn(workspaceId).POST('/phone/tokens', { body }))).token;
  }

  #receive(notice: Notice): void {
    if (notice.type === 'welcome') {
      this.#resumeToken = notice.resume_token;
      this.#retryMs = FIRST_RETRY_MS;
      this.#isWelcomed = true;
      this.#welcomed.resolve();
    }
    this.#options.onNotice(notice);
  }

  #closed(code: number, reason: string): void {
    this.#socket = null;
    if (this.#isWelcomed) {
      this.#isWelcomed = false;
      this.#welcomed = Promise.withResolvers<void>();
      this.#welcomed.promise.catch(() => {});
    }
    if (code === 4001) {
      this.#refuse({ code: 'REPLACED', message: phoneText.replaced });
      return;
    }
    if (code === 1008 && this.#resumeToken !== null) {
      this.#resumeToken = null;
      this.#options.onForgotten();
    }
    if (code === 1008 && reason === 'RATE_LIMITED') this.#retryMs = SLOWEST_RETRY_MS;
    this.#options.onInterrupted();
    this.#retry();
  }

  #retry(): void {
    const slowest = this.#resumeToken === null ? SLOWEST_RETRY_MS : SLOWEST_RESUME_MS;
    this.#timer = setTimeout(() => void this.#open(), Math.min(this.#retryMs, slowest));
    this.#retryMs = Math.min(this.#retryMs * 2, SLOWEST_RETRY_MS);
  }

  #refuse(problem: PhoneProblem): void {
    this.#end();
    this.#options.onRefused(problem);
  }
}

/** Whether a retry would fail the same way. */
function isFinal({ status, code }: ApiError): boolean {
  return code === 'WEBRTC_NOT_AVAILABLE' || (status >= 400 && status < 500 && status !== 429);
}
