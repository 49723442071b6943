import type { SamplesTaken } from '../../machines/utterances.ts';
import type { Outcome } from './conclude-utterance.ts';
import type { Decoded } from './decode-utterance.ts';
import { type Entry, UtteranceStream } from './utterance-stream.ts';

/**
 * Recognises the utterances of a file in parallel, on as many recognizers as are available. Reports processed samples,
 * which pace the reader of the file. With diarisation by voice, emits all results at the end.
 */
export class BatchStream extends UtteranceStream {
  protected readonly isLive = false;
  /** Outcomes that wait for the end, because their speaker labels may still change. */
  readonly #held: Outcome[] = [];

  protected recognise(entry: Entry): Promise<Decoded> {
    return this.decode(entry, { isLive: false, urgency: () => 'batch', hypotheses: null });
  }

  protected override emitOutcome(outcome: Outcome): void {
    if (this.settings.diarization?.by === 'voice') this.#held.push(outcome);
    else this.emit(outcome);
  }

  protected override emitHeld(): void {
    const relabel = this.options.speakers.finish();
    for (const outcome of this.#held) {
      if (outcome.type === 'utterance.unusable' || relabel === null) this.emit(outcome);
      else
        this.emit({ ...outcome, recognition: { ...outcome.recognition, words: relabel(outcome.recognition.words) } });
    }
  }

  /** Does nothing: a file has no backlog to limit. */
  protected receive(): void {}

  protected release(samples: number): void {
    if (samples > 0) this.options.port.postMessage({ type: 'samples.taken', samples } satisfies SamplesTaken);
  }
}
