import { PHONE_OFF, type PhoneCall, type PhoneState } from './phone-state.ts';

/** The state of a phone and its observers. */
export class PhoneStore {
  readonly #watchers = new Set<() => void>();
  #state = PHONE_OFF;

  get state(): PhoneState {
    return this.#state;
  }

  subscribe(watcher: () => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  change(changes: Partial<PhoneState>): void {
    this.#state = { ...this.#state, ...changes };
    for (const watcher of this.#watchers) watcher();
  }

  /** Ignored without a call. The phase `ending` stays. */
  changeCall(changes: Partial<PhoneCall>): void {
    const { call } = this.#state;
    if (call === null) return;
    const phase = call.phase === 'ending' ? 'ending' : (changes.phase ?? call.phase);
    this.change({ call: { ...call, ...changes, phase } });
  }

  /** Applies to the current call, or to one that this phone has left. */
  changeProgress(callId: string, progress: PhoneCall['progress']): void {
    const { call, ended } = this.#state;
    if (call?.callId === callId) this.changeCall({ progress });
    else if (ended?.callId === callId) this.change({ ended: { ...ended, progress } });
  }

  /** Whether this is the phone's call and it is not ending. */
  isCurrent({ callId }: PhoneCall): boolean {
    return this.#state.call?.callId === callId && this.#state.call.phase !== 'ending';
  }
}
