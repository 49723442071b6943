import { describe, expect, it } from 'vitest';
import { type DeliveryOptions, deliveryOf } from '../../../speech/synthesis/delivery.ts';
import { ACTIVE_LEVEL_DBOV } from '../../../speech/synthesis/output/effect-chain.ts';
import { NEUTRAL_PROSODY } from '../../../speech/text/script.ts';
import { BAND_CENTRES_HZ, type VoiceMeasures } from '../../../speech/voices/voice-measures.ts';
import { PLAIN_CHARACTER, type SpeakingStyle, USUAL_STYLE } from '../../../speech/voices/voice-recipe.ts';
import { RECIPE } from './said.ts';

const FLAT = BAND_CENTRES_HZ.map(() => 0);
const OWN: VoiceMeasures = {
  wordsPerMinute: 160,
  syllablesPerSecond: null,
  pitchHz: 110,
  pitchRangeSemitones: 6,
  levelDbov: -17,
  spectrumDb: FLAT,
};

const deliver = ({
  style,
  recipe,
  prosody,
  controlsPitch = true,
}: Partial<DeliveryOptions> & { style?: object } = {}) =>
  deliveryOf({
    recipe: { ...RECIPE, own: OWN, ...recipe },
    style: { ...USUAL_STYLE, ...style } as SpeakingStyle,
    prosody: { ...NEUTRAL_PROSODY, ...prosody },
    controlsPitch,
  });

describe('speaking style of a request', () => {
  it.each([
    ['the default speed', {}, null, 137],
    ['the speed of the voice', {}, 150, 150],
    ['the requested speed in words per minute', { wordsPerMinute: 200 }, 150, 200],
    ['the requested factor', { speed: 2 }, 150, 300],
  ])('uses %s', (_name, style, wordsPerMinute, expected) => {
    const recipe = { ...RECIPE, own: OWN, character: { ...PLAIN_CHARACTER, wordsPerMinute } };
    expect(deliver({ style: style as SpeakingStyle, recipe }).engine.speed).toBeCloseTo(expected / 160, 6);
  });

  it('scales the rate of SSML, and assumes the nominal speed for an unmeasured voice', () => {
    expect(deliver({ prosody: { ...NEUTRAL_PROSODY, rate: 0.5 } }).engine.speed).toBeCloseTo(137 / 160 / 2, 6);
    expect(deliver({ recipe: { ...RECIPE, own: null } }).engine.speed).toBeCloseTo(137 / 175, 6);
    expect(deliver({ style: { speed: 2, wordsPerMinute: 5000 } as SpeakingStyle }).engine.speed).toBe(5);
  });

  it('reduces pitch movement with stability, and keeps it at 50', () => {
    const ranges = [0, 25, 50, 75, 100].map(
      (stability) => deliver({ style: { stability } as SpeakingStyle }).engine.pitchRange,
    );
    expect(ranges[0]).toBeCloseTo(2, 6);
    expect(ranges[2]).toBeCloseTo(1, 6);
    expect(ranges[4]).toBeCloseTo(0.1, 6);
    expect(ranges).toEqual(ranges.toSorted((a, b) => b - a));
  });

  it('lets the engine change the pitch if it can, otherwise the effects', () => {
    const prosody = { ...NEUTRAL_PROSODY, pitchSemitones: 3 };
    expect(deliver({ prosody })).toMatchObject({
      engine: { pitchSemitones: 3 },
      effects: { pitchSemitones: 0, pitchRange: 1 },
    });
    expect(deliver({ prosody, controlsPitch: false })).toMatchObject({
      engine: { pitchSemitones: 0, pitchRange: 1 },
      effects: { pitchSemitones: 3, pitchCentreHz: 110 },
    });
  });

  it('equalises towards the target spectrum in proportion to similarity, by 12 dB at most', () => {
    const spectrumDb = FLAT.map((_, band) => (band === 3 ? 8 : band === 4 ? 40 : 0));
    const recipe = { ...RECIPE, own: OWN, character: { ...PLAIN_CHARACTER, spectrumDb } };
    const { equaliserDb } = deliver({ recipe, style: { similarity: 50 } as SpeakingStyle }).effects;
    expect(equaliserDb.slice(2, 6)).toEqual([0, 4, 12, 0]);
    expect(deliver({ recipe, style: { similarity: 0 } as SpeakingStyle }).effects.equaliserDb).toEqual(FLAT);
  });

  it('normalises levels with enhancement, and otherwise applies requested changes only', () => {
    const character = { ...PLAIN_CHARACTER, levelDb: 2 };
    const prosody = { ...NEUTRAL_PROSODY, volumeDb: -6 };
    const recipe = { ...RECIPE, own: OWN, character };
    expect(deliver({ recipe, prosody }).effects.gainDb).toBeCloseTo(ACTIVE_LEVEL_DBOV + 17 - 4, 6);
    expect(deliver({ recipe, prosody, style: { enhance: false } as SpeakingStyle }).effects.gainDb).toBeCloseTo(-4, 6);
    const silent = { ...NEUTRAL_PROSODY, volumeDb: Number.NEGATIVE_INFINITY };
    expect(deliver({ prosody: silent }).effects.gainDb).toBe(Number.NEGATIVE_INFINITY);
  });

  it('keeps the level when it equalises', () => {
    const spectrumDb = FLAT.map(() => 6);
    const recipe = { ...RECIPE, own: OWN, character: { ...PLAIN_CHARACTER, spectrumDb } };
    const style = { similarity: 100, enhance: false } as SpeakingStyle;
    expect(deliver({ recipe, style }).effects.gainDb).toBeCloseTo(-6, 6);
  });
});
