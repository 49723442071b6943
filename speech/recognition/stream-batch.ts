import type { SamplesTaken } from '../../machines/utterances.ts';
import type { Outcome } from './conclude-utterance.ts';
import type { Decoded } from './decode-utterance.ts';
import { type Entry, UtteranceStream } from './utterance-stream.ts';

/**
 * A file: its utterances are recognised side by side, on as many recognizers as can be had. The reader of the file is
 * told what has come to a recognizer, and waits. Where voices are told apart, all is told at the end.
 */
export class BatchStream extends UtteranceStream {
  protected readonly isLive = false;
  /** Outcomes with speakers that may turn out to be others. */
  readonly #held: Outcome[] = [];

  protected recognise(entry: Entry): Promise<Decoded> {
    return this.decode(entry, { isLive: false, urgency: () => 'batch', hypotheses: null });
  }

  protected override tellOutcome(outcome: Outcome): void {
    if (this.settings.diarization?.by === 'voice') this.#held.push(outcome);
    else this.tell(outcome);
  }

  protected override tellHeld(): void {
    const relabel = this.options.speakers.finish();
    for (const outcome of this.#held) {
      if (outcome.type === 'utterance.unusable' || relabel === null) this.tell(outcome);
      else
        this.tell({ ...outcome, recognition: { ...outcome.recognition, words: relabel(outcome.recognition.words) } });
    }
  }

  protected receive(): void {}

  protected release(samples: number): void {
    if (samples > 0) this.options.port.postMessage({ type: 'samples.taken', samples } satisfies SamplesTaken);
  }
}
