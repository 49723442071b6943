import type { RecognisedWord } from '../../machines/utterances.ts';
import {
  createDiarizer,
  type Diarizer,
  relabelled,
  type SpeakerEmbedder,
  type SpeakerTurn,
} from '../diarization/diarizer.ts';
import type { RecognitionSettings } from '../speech-recognition.ts';
import type { Utterance } from './utterance.ts';

export interface SpeakerLabelsOptions {
  mode: 'live' | 'batch';
  /** Null leaves voices to the basic method. */
  embedder: SpeakerEmbedder | null;
  /** The model is given up for this stream. */
  onBroken?: (detail: string) => void;
}

/** Who spoke in a stream: by its channels, or by voices. */
export class SpeakerLabels {
  readonly #mode: 'live' | 'batch';
  readonly #onBroken: SpeakerLabelsOptions['onBroken'];
  #embedder: SpeakerEmbedder | null;
  #diarizer: Diarizer | null = null;
  #settings: RecognitionSettings['diarization'] = null;

  constructor({ mode, embedder, onBroken }: SpeakerLabelsOptions) {
    this.#mode = mode;
    this.#onBroken = onBroken;
    this.#embedder = embedder;
  }

  /** Utterances come in their order, one at a time; words in time of the stream. */
  async label(
    utterance: Utterance,
    words: RecognisedWord[],
    settings: RecognitionSettings['diarization'],
  ): Promise<RecognisedWord[]> {
    if (settings === null) return words;
    if (settings.by === 'channel')
      return words.map((word) => ({ ...word, speaker: `speaker_${utterance.channel + 1}` }));
    const heard = { samples: utterance.readAll(), startMs: utterance.startMs, words };
    try {
      return await this.#diarizerFor(settings).label(heard);
    } catch (error) {
      if (this.#embedder === null) throw error;
      // What compared the voices broke: the rest of the stream has to do without.
      this.#onBroken?.(error instanceof Error ? error.message : String(error));
      this.#embedder = null;
      this.#diarizer = null;
      return await this.#diarizerFor(settings).label(heard);
    }
  }

  /** Who spoke in a batch, in the light of all of it; null when its words are right as they are. */
  finish(): ((words: readonly RecognisedWord[]) => RecognisedWord[]) | null {
    const turns: SpeakerTurn[] = this.#mode === 'batch' ? (this.#diarizer?.finish() ?? []) : [];
    return turns.length === 0 ? null : (words) => relabelled(words, turns);
  }

  #diarizerFor(settings: NonNullable<RecognitionSettings['diarization']>): Diarizer {
    const { minSpeakers, maxSpeakers } = settings;
    const isSame = this.#settings?.minSpeakers === minSpeakers && this.#settings.maxSpeakers === maxSpeakers;
    if (this.#diarizer === null || !isSame) {
      const embedder = this.#embedder === null ? {} : { embedder: this.#embedder };
      this.#diarizer = createDiarizer({ mode: this.#mode, minSpeakers, maxSpeakers, ...embedder });
      this.#settings = settings;
    }
    return this.#diarizer;
  }
}
