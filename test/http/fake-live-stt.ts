import type { LiveSession, LiveStt, OpenLiveSession, SessionCommand } from '../../actors/stt/live-stt.ts';
import type { AudioFormat } from '../../machines/utterances.ts';

/** Sessions without recognition: they record their input and emit the test's events. */
export class FakeLiveStt implements LiveStt {
  readonly sessions: FakeLiveSession[] = [];

  open(options: OpenLiveSession): FakeLiveSession {
    const session = new FakeLiveSession(options);
    this.sessions.push(session);
    return session;
  }

  get session(): FakeLiveSession {
    const session = this.sessions.at(-1);
    if (session === undefined) throw new Error('no session was opened');
    return session;
  }

  get live(): FakeLiveSession[] {
    return this.sessions.filter(({ endedBy }) => endedBy === null);
  }

  languages() {
    return ['en'];
  }
}

class FakeLiveSession implements LiveSession {
  readonly id = 'session-1';
  readonly options: OpenLiveSession;
  readonly commands: SessionCommand[] = [];
  readonly received: { bytes: number[]; format: AudioFormat }[] = [];
  isStarted = true;
  endedBy: Parameters<LiveSession['end']>[0] | 'itself' | null = null;
  readonly #ended = Promise.withResolvers<void>();
  readonly ended = this.#ended.promise;

  constructor(options: OpenLiveSession) {
    this.options = options;
  }

  send(command: SessionCommand): void {
    this.commands.push(command);
  }

  audio(bytes: Uint8Array<ArrayBuffer>, format: AudioFormat): boolean {
    // Transfers the buffer, as the real listener does to another thread.
    const taken = structuredClone(bytes, { transfer: [bytes.buffer] });
    if (this.isStarted) this.received.push({ bytes: [...taken], format });
    return this.isStarted;
  }

  end(reason: Parameters<LiveSession['end']>[0]): void {
    this.#end(reason, { code: 1008, reason });
  }

  close(code: number, reason: string): void {
    this.#end('itself', { code, reason });
  }

  #end(by: NonNullable<FakeLiveSession['endedBy']>, close: { code: number; reason: string }): void {
    if (this.endedBy !== null) return;
    this.endedBy = by;
    this.options.onClosed(close);
    this.#ended.resolve();
  }
}
