import type { RecognisedFile, RecognisedSegment } from '../../machines/transcription.machine.ts';
import { joinedTexts, type RecognisedWord, type RecognitionEvent } from '../../machines/utterances.ts';

export type UtteranceRecognised = Extract<RecognitionEvent, { type: 'utterance.recognised' }>;
export type UtteranceUnusable = Extract<RecognitionEvent, { type: 'utterance.unusable' }>;

/** A pause of this length, or another speaker, begins a new segment. */
const SEGMENT_PAUSE_MS = 700;

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
  // Text with punctuation or without spaces differs from its words, so it cannot be split.
  if (words.length === 0 || words.map(({ word }) => word).join(' ') !== text) return [whole];
  const runs: RecognisedWord[][] = [];
  for (const word of words) {
    const last = runs.at(-1)?.at(-1);
    const goesOn = last?.speaker === word.speaker && word.startMs - last.endMs < SEGMENT_PAUSE_MS;
    if (goesOn) runs.at(-1)!.push(word);
    else runs.push([word]);
  }
  return runs.map((run) => ({
    chunkIndex,
    startMs: run[0]!.startMs,
    endMs: run.at(-1)!.endMs,
    text: run.map(({ word }) => word).join(' '),
    speaker: run[0]!.speaker,
    language,
    words: run,
  }));
}
