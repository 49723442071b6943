import type { SamplesTaken } from '../../machines/utterances.ts';
import type { Decoded } from './decode-utterance.ts';
import { type Entry, UtteranceStream } from './utterance-stream.ts';

/**
 * A file: its utterances are recognised side by side, on as many recognizers as can be had. The reader of the file is
 * told how far recognition has come, and waits.
 */
export class BatchStream extends UtteranceStream {
  protected recognise(entry: Entry): Promise<Decoded> {
    return this.decode(entry, { urgency: () => 'batch', hypotheses: null });
  }

  protected receive(): void {}

  protected release(samples: number): void {
    if (samples > 0) this.options.port.postMessage({ type: 'samples.taken', samples } satisfies SamplesTaken);
  }
}
