import type { RecognisedFile, RecognisedSegment } from '../../machines/transcription.machine.ts';
import { joinedTexts, type RecognisedWord, type RecognitionEvent } from '../../machines/utterances.ts';
import { placesOf } from '../../speech/word-places.ts';

export type UtteranceRecognised = Extract<RecognitionEvent, { type: 'utterance.recognised' }>;
export type UtteranceUnusable = Extract<RecognitionEvent, { type: 'utterance.unusable' }>;

/** A pause of this length, or another speaker, begins a new segment. */
const SEGMENT_PAUSE_MS = 700;
const NOT_SPACE = /\S/;

/** Combines the recognised chunks of a file into one text, in speaking order. */
export function assembleTranscript(
  outcomes: readonly (UtteranceRecognised | UtteranceUnusable)[],
  { snrDb, model, ignoresKeywords }: Pick<RecognisedFile, 'snrDb' | 'model' | 'ignoresKeywords'>,
): RecognisedFile {
  const chunks = outcomes.toSorted((a, b) => a.summary.startMs - b.summary.startMs);
  const recognised = chunks.filter((chunk) => chunk.type === 'utterance.recognised');
  const segments = recognised
    .flatMap((chunk) => segmentsOf(chunk, chunks.indexOf(chunk)))
    // Two channels may talk at the same time.
    .sort((a, b) => a.startMs - b.startMs);
  const spoken = mostSpoken(recognised);
  return {
    text: joinedTexts(segments.map(({ text }) => text)),
    language: spoken?.recognition.language ?? null,
    languageProbability: spoken?.recognition.languageProbability ?? null,
    snrDb,
    segments,
    speakers: [...new Set(segments.map(({ speaker }) => speaker).filter((speaker) => speaker !== null))],
    model: recognised[0]?.recognition.model ?? model,
    ignoresKeywords,
    isChunked: isChunked(chunks),
    unusable: chunks.flatMap((chunk) => (chunk.type === 'utterance.unusable' ? [chunk.reason] : [])),
  };
}

function isChunked(chunks: readonly { summary: { channel: number } }[]): boolean {
  return new Set(chunks.map(({ summary }) => summary.channel)).size < chunks.length;
}

/** Returns the chunk that represents the file: the longest in the language with the most text. */
function mostSpoken(chunks: readonly UtteranceRecognised[]): UtteranceRecognised | null {
  const lengths = new Map<string, number>();
  for (const { recognition } of chunks) {
    lengths.set(recognition.language, (lengths.get(recognition.language) ?? 0) + recognition.text.length);
  }
  const [language] = [...lengths].sort(([, a], [, b]) => b - a)[0] ?? [];
  return (
    chunks
      .filter(({ recognition }) => recognition.language === language)
      .toSorted((a, b) => b.recognition.text.length - a.recognition.text.length)[0] ?? null
  );
}

function segmentsOf({ summary, recognition }: UtteranceRecognised, chunkIndex: number): RecognisedSegment[] {
  const { text, words, language } = recognition;
  const speaker = words[0]?.speaker ?? null;
  const whole = { chunkIndex, startMs: summary.startMs, endMs: summary.endMs, text, speaker, language, words };
  const places = placesOf(words, text, NOT_SPACE);
  // A text with punctuation that is not in its words cannot be split.
  if (words.length === 0 || places === null) return [whole];
  const runs: { from: number; words: RecognisedWord[] }[] = [];
  for (const [from, word] of words.entries()) {
    const run = runs.at(-1)?.words ?? [];
    const last = run.at(-1);
    const goesOn = run[0]?.speaker === word.speaker && word.startMs - last!.endMs < SEGMENT_PAUSE_MS;
    // Some servers report "don't" or a full stop in parts.
    const isPart = from > 0 && places[from]!.start === places[from - 1]!.end && hasSpaceBetween(last!, word);
    if (goesOn || isPart) run.push(word);
    else runs.push({ from, words: [word] });
  }
  return runs.map(({ from, words: run }) => ({
    chunkIndex,
    startMs: run[0]!.startMs,
    endMs: run.at(-1)!.endMs,
    text: text.slice(places[from]!.start, places[from + run.length - 1]!.end),
    speaker: run[0]!.speaker,
    language,
    words: run,
  }));
}

function hasSpaceBetween({ word: before }: RecognisedWord, { word: after }: RecognisedWord): boolean {
  return joinedTexts([before, after]) !== `${before}${after}`;
}
