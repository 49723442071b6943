import { readFileSync, writeFileSync } from 'node:fs';
import { createEspeakEngine } from '../engines/espeak-ng/espeak-engine.ts';
import { calibrateVoice } from './calibrate.ts';
import { ESPEAK_CHARACTERS } from './espeak-characters.ts';
import { ESPEAK_VARIANTS, REFERENCE } from './espeak-measures.ts';
import type { VoiceMeasures } from './voice-measures.ts';

/**
 * `node speech/voices/calibrate-espeak.ts` measures every eSpeak NG voice of the catalogue and writes
 * `espeak-ng-measures.json`. Run it again when the engine, its controls, `measure-voice.ts`, the passages or the
 * characters' variants change; a test fails until then.
 */
const TABLE = new URL('./espeak-ng-measures.json', import.meta.url);

const engine = createEspeakEngine({ processes: 1 });
const { signal } = new AbortController();
const voices = await engine.voices();
const languages = new Map(voices.map(({ name, language }) => [name, language]));
const names = new Set([
  ...languages.keys(),
  ...ESPEAK_VARIANTS.map((variant) => `${REFERENCE}+${variant}`),
  ...ESPEAK_CHARACTERS.map(({ base, timbre }) => `${base}+${timbre.variant}`),
]);
const synthesizer = await engine.start({ model: voices[0]!.model, signal });
const rows: string[] = [];
for (const voice of [...names].toSorted()) {
  const measures = await calibrateVoice(synthesizer, { voice, language: languages.get(voice.split('+')[0]!)! }, signal);
  rows.push(`${JSON.stringify(voice)}: ${JSON.stringify(rounded(measures))}`);
  process.stdout.write(
    `${voice}: ${measures.wordsPerMinute?.toFixed(0) ?? '-'} words/min, ${measures.pitchHz?.toFixed(0)} Hz\n`,
  );
}
await synthesizer.close();
const before = readFileSync(TABLE, 'utf8');
const table = `{\n${rows.join(',\n')}\n}\n`;
if (table !== before) writeFileSync(TABLE, table);

/** To the precision of the measurement. */
function rounded(measures: VoiceMeasures): VoiceMeasures {
  return {
    wordsPerMinute: decimal(measures.wordsPerMinute, 0),
    syllablesPerSecond: decimal(measures.syllablesPerSecond, 2),
    pitchHz: decimal(measures.pitchHz, 1),
    pitchRangeSemitones: decimal(measures.pitchRangeSemitones, 1),
    levelDbov: decimal(measures.levelDbov, 1),
    spectrumDb: measures.spectrumDb.map((level) => decimal(level, 0)),
  };
}

function decimal<T extends number | null>(value: T, digits: number): T {
  return (value === null ? null : Number(value.toFixed(digits)) + 0) as T;
}
