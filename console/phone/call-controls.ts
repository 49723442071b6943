import { apiIn, bodyOf } from '../app/api.ts';
import { followEvents } from '../app/live-events.ts';
import {
  type CallEvent,
  type CallProgress,
  farLegOf,
  holdLegOf,
  NO_PROGRESS,
  PROGRESS_EVENTS,
  progressAfter,
} from './call-progress.ts';

/** A phone number, or the browser of a user. */
export type Endpoint = { type: 'phone'; number: string } | { type: 'webrtc'; user_id: number };

interface CallControlsOptions {
  callId: string;
  legId: string;
  /** The call's workspace. */
  workspaceId: string | null;
  onProgress: (progress: CallProgress) => void;
}

/** API actions of a phone on its call, and the call's events. Each method throws ApiError. */
export class CallControls {
  readonly #options: CallControlsOptions;
  readonly #api: ReturnType<typeof apiIn>;
  #unfollow: () => void = () => {};
  #progress = NO_PROGRESS;
  #lastSequence = 0;
  #keys = '';
  #pressing: Promise<void> | null = null;

  constructor(options: CallControlsOptions) {
    this.#options = options;
    this.#api = apiIn(options.workspaceId);
  }

  /** Starts to report all events of the call. Not while it rings, because browsers limit connections. */
  follow(): void {
    const { callId, workspaceId } = this.#options;
    const query = new URLSearchParams({ workspace_id: workspaceId ?? '' });
    const listeners = Object.fromEntries(PROGRESS_EVENTS.map((name) => [name, (data: unknown) => this.#take(data)]));
    this.#unfollow();
    this.#unfollow = followEvents(`/dialer/click2call/${encodeURIComponent(callId)}/stream?${query}`, listeners);
  }

  async hold(): Promise<void> {
    const leg = holdLegOf(this.#progress, this.#options.legId);
    await bodyOf(this.#api.POST('/dialer/click2call/{id}/hold', { ...this.#path, body: { leg, music: true } }));
  }

  async resume(): Promise<void> {
    const leg = holdLegOf(this.#progress, this.#options.legId);
    await bodyOf(this.#api.POST('/dialer/click2call/{id}/resume', { ...this.#path, body: { leg } }));
  }

  /** Sends a key to the other party. Keys pressed meanwhile follow in order in one request. */
  async press(key: string): Promise<void> {
    this.#keys += key;
    this.#pressing ??= this.#sendKeys().finally(() => {
      this.#pressing = null;
    });
    await this.#pressing;
  }

  async transfer(endpoint: Endpoint, mode: 'blind' | 'attended'): Promise<void> {
    const body = { endpoint, mode, leg: this.#options.legId };
    await bodyOf(this.#api.POST('/dialer/click2call/{id}/transfer', { ...this.#path, body }));
  }

  async completeTransfer(): Promise<void> {
    await bodyOf(this.#api.POST('/dialer/click2call/{id}/transfer/complete', this.#path));
  }

  async cancelTransfer(): Promise<void> {
    await bodyOf(this.#api.DELETE('/dialer/click2call/{id}/transfer', this.#path));
  }

  close(): void {
    this.#unfollow();
  }

  get #path() {
    return { params: { path: { id: this.#options.callId } } };
  }

  async #sendKeys(): Promise<void> {
    const leg = farLegOf(this.#progress, this.#options.legId) ?? 'customer';
    while (this.#keys !== '') {
      const digits = this.#keys.slice(0, MOST_KEYS);
      this.#keys = this.#keys.slice(MOST_KEYS);
      try {
        await bodyOf(this.#api.POST('/dialer/click2call/{id}/dtmf', { ...this.#path, body: { leg, digits } }));
      } catch (error) {
        this.#keys = '';
        throw error;
      }
    }
  }

  #take(data: unknown): void {
    const event = data as CallEvent;
    // A reopened stream repeats events.
    if (event.sequence <= this.#lastSequence) return;
    this.#lastSequence = event.sequence;
    const next = progressAfter(this.#progress, event);
    if (next === this.#progress) return;
    this.#progress = next;
    this.#options.onProgress(next);
    // The stream is complete. Without this the browser would reopen it.
    if (next.outcome !== null) this.close();
  }
}

/** Limit per request. */
const MOST_KEYS = 64;
