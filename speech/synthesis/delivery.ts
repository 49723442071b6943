import { clamp } from '../../runtime/clamp.ts';
import type { SynthesisEngineName } from '../synthesizer.ts';
import type { Prosody } from '../text/script.ts';
import { BAND_CENTRES_HZ, type VoiceMeasures } from '../voices/voice-measures.ts';
import { DEFAULT_WORDS_PER_MINUTE, type SpeakingStyle, type VoiceRecipe } from '../voices/voice-recipe.ts';
import { ACTIVE_LEVEL_DBOV, type SpeechEffectSettings } from './output/effect-chain.ts';

/** How to speak a clause: parameters for the engine, and effects on its output. */
export interface Delivery {
  /** Fields of `Clause`. */
  engine: { speed: number; pitchSemitones: number; pitchRange: number };
  /** Pitch is unchanged if the engine controls it. */
  effects: SpeechEffectSettings & { equaliserDb: readonly number[]; pitchCentreHz: number | null };
}

export interface DeliveryOptions {
  recipe: VoiceRecipe;
  style: SpeakingStyle;
  prosody: Prosody;
  /** `SynthesisEngine.controlsPitch`. */
  controlsPitch: boolean;
}

export function deliveryOf({ recipe, style, prosody, controlsPitch }: DeliveryOptions): Delivery {
  const { character, own } = recipe;
  const pitch = {
    pitchSemitones: clamp(character.pitchSemitones + prosody.pitchSemitones, -MOST_SEMITONES, MOST_SEMITONES),
    pitchRange: character.pitchRange * rangeOfStability(style.stability),
  };
  const equaliserDb = equaliserOf(recipe, style.similarity);
  return {
    engine: { speed: speedOf({ recipe, style, prosody }), ...(controlsPitch ? pitch : NO_PITCH) },
    effects: {
      ...(controlsPitch ? NO_PITCH : pitch),
      pitchCentreHz: own?.pitchHz ?? null,
      equaliserDb,
      gainDb:
        (style.enhance && own !== null ? ACTIVE_LEVEL_DBOV - own.levelDbov : 0) +
        (own === null ? 0 : -levelChangeDb(own, equaliserDb)) +
        character.levelDb +
        prosody.volumeDb,
      enhance: style.enhance,
    },
  };
}

const NO_PITCH = { pitchSemitones: 0, pitchRange: 1 };
const MOST_SEMITONES = 24;
const [SLOWEST, FASTEST] = [0.2, 5];
const MOST_EQUALISER_DB = 12;
const FLAT: readonly number[] = BAND_CENTRES_HZ.map(() => 0);

/**
 * Assumed pace of engines without measures: eSpeak NG's default rate; else that of people reading aloud, on whom models
 * are trained (LJ Speech: 225 715 words in 23:55 h).
 */
const NOMINAL_WORDS_PER_MINUTE: Record<SynthesisEngineName, number> = {
  'espeak-ng': 175,
  'sherpa-onnx': 157,
  openai: 157,
};

function speedOf({ recipe, style, prosody }: Omit<DeliveryOptions, 'controlsPitch'>): number {
  const natural = style.wordsPerMinute ?? recipe.character.wordsPerMinute ?? DEFAULT_WORDS_PER_MINUTE;
  const own = recipe.own?.wordsPerMinute ?? NOMINAL_WORDS_PER_MINUTE[recipe.engine];
  return clamp((natural * style.speed * prosody.rate) / own, SLOWEST, FASTEST);
}

/** The parabola through twice the voice's own range at 0, its own at 50, and a tenth at 100. */
function rangeOfStability(stability: number): number {
  return 2 - 0.021 * stability + 0.000_02 * stability ** 2;
}

/** Moves the voice's spectrum towards the target by the share of `similarity`. */
function equaliserOf({ own, character: { spectrumDb } }: VoiceRecipe, similarity: number): readonly number[] {
  if (own === null || spectrumDb === null) return FLAT;
  return FLAT.map((_, band) => {
    const wayDb = (spectrumDb[band] ?? 0) - (own.spectrumDb[band] ?? 0);
    return clamp((wayDb * similarity) / 100, -MOST_EQUALISER_DB, MOST_EQUALISER_DB);
  });
}

/** The equaliser's effect on the level, which is compensated: it should change the timbre, not the loudness. */
function levelChangeDb({ spectrumDb }: VoiceMeasures, equaliserDb: readonly number[]): number {
  let before = 0;
  let after = 0;
  for (const [band, levelDb] of spectrumDb.entries()) {
    before += 10 ** (levelDb / 10);
    after += 10 ** ((levelDb + (equaliserDb[band] ?? 0)) / 10);
  }
  return before > 0 ? 10 * Math.log10(after / before) : 0;
}
