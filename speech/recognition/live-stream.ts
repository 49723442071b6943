import type { Hypothesis } from '../recognizer.ts';
import type { Urgency } from './claims.ts';
import { type Decoded, millisecondsOf } from './decode-utterance.ts';
import type { Utterance } from './utterance.ts';
import { type Entry, UtteranceStream } from './utterance-stream.ts';

/** Backlog from which hypotheses are dropped, until the stream has nearly caught up. */
const SHED_FROM_MS = 2_000;
const SHED_UNTIL_MS = 1_000;
/** Backlog from which an unfinished utterance is as urgent as a finished one. */
const DUE_FROM_MS = 5_000;
const OVERLOADED_FROM_MS = 30_000;

/**
 * Recognises the utterances of a live stream in order, each while it is spoken. Buffers the backlog, so that nothing is
 * lost. When the backlog is too large, it first drops hypotheses, then ends the stream.
 */
export class LiveStream extends UtteranceStream {
  protected readonly isLive = true;
  #waitingSamples = 0;
  #isShedding = false;
  #hypothesisTimer: NodeJS.Timeout | null = null;

  protected async recognise(entry: Entry, earlier: Promise<void>): Promise<Decoded> {
    await earlier;
    const { utterance, settings } = entry;
    const { hypothesisEveryMs } = settings;
    const hypotheses = hypothesisEveryMs === null ? null : this.#hypothesesOf(utterance, hypothesisEveryMs);
    try {
      return await this.decode(entry, { isLive: true, urgency: () => this.#urgencyOf(utterance), hypotheses });
    } finally {
      this.#stopHypotheses();
    }
  }

  protected receive(samples: number): void {
    this.#waitingSamples += samples;
    this.#weighLag();
  }

  protected release(samples: number): void {
    this.#waitingSamples -= samples;
    this.#weighLag();
  }

  protected override onClose(): void {
    this.#stopHypotheses();
  }

  #urgencyOf({ end }: Utterance): Urgency {
    return end !== null || this.#lagMs() > DUE_FROM_MS ? 'due' : 'spoken';
  }

  #hypothesesOf(utterance: Utterance, everyMs: number) {
    let isTime = false;
    let emittedLength = 0;
    this.#hypothesisTimer = setInterval(() => {
      isTime = true;
      utterance.wake();
    }, everyMs);
    const areDue = (): boolean =>
      isTime && !this.#isShedding && utterance.end === null && utterance.length > emittedLength;
    return {
      areDue,
      onHypothesis: (hypothesis: Hypothesis | null): void => {
        isTime = false;
        emittedLength = utterance.length;
        if (hypothesis !== null && utterance.end === null) this.emitHypothesis(utterance, hypothesis, this.#lagMs());
      },
    };
  }

  #stopHypotheses(): void {
    if (this.#hypothesisTimer !== null) clearInterval(this.#hypothesisTimer);
    this.#hypothesisTimer = null;
  }

  #lagMs(): number {
    return millisecondsOf(this.#waitingSamples);
  }

  #weighLag(): void {
    const lagMs = this.#lagMs();
    if (lagMs > OVERLOADED_FROM_MS) {
      this.finish({ type: 'recognition.overloaded', lagMs });
      return;
    }
    const isShedding = lagMs > (this.#isShedding ? SHED_UNTIL_MS : SHED_FROM_MS);
    if (isShedding === this.#isShedding) return;
    this.#isShedding = isShedding;
    this.emit({ type: 'recognition.lagging', lagMs, isShedding });
  }
}
