const MEDIA_TYPE = 'audio/mpeg';

/** Whether this browser plays MP3 while it arrives. */
export function canGrow(): boolean {
  return 'MediaSource' in globalThis && MediaSource.isTypeSupported(MEDIA_TYPE);
}

/** MP3 that an audio element plays while it arrives. */
export class GrowingAudio {
  readonly #source = new MediaSource();
  /** For the element's `src`. The caller revokes it. */
  readonly url = URL.createObjectURL(this.#source);
  readonly #waiting: Uint8Array<ArrayBuffer>[] = [];
  #buffer: SourceBuffer | null = null;
  #isComplete = false;

  constructor() {
    this.#source.onsourceopen = () => {
      this.#buffer = this.#source.addSourceBuffer(MEDIA_TYPE);
      this.#buffer.onupdateend = () => this.#pump();
      this.#pump();
    };
  }

  append(audio: Uint8Array<ArrayBuffer>): void {
    this.#waiting.push(audio);
    this.#pump();
  }

  complete(): void {
    this.#isComplete = true;
    this.#pump();
  }

  /** A SourceBuffer accepts one chunk at a time. */
  #pump(): void {
    if (this.#buffer === null || this.#buffer.updating || this.#source.readyState !== 'open') return;
    const next = this.#waiting.shift();
    if (next) this.#buffer.appendBuffer(next);
    else if (this.#isComplete) this.#source.endOfStream();
  }
}
