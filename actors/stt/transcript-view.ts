import { type WordOnWire, wordOnWire } from '../../machines/stt-messages.ts';
import type {
  DecodedAudio,
  RecognisedFile,
  RecognisedSegment,
  RefinedFile,
  Settlement,
} from '../../machines/transcription.machine.ts';
import type { RecognisedWord } from '../../machines/utterances.ts';
import { seconds } from '../../machines/utterances.ts';
import { nanoToUsd } from '../../runtime/money.ts';
import type {
  PublicSegment,
  PublicTranscript,
  TranscribeRequest,
  TranscriptOptions,
  WarningCode,
} from './transcriber.ts';

export interface PresentedTranscription {
  request: TranscribeRequest;
  audio: DecodedAudio;
  file: RecognisedFile;
  refined: RefinedFile | null;
  settlement: Settlement;
  processingMs: number;
}

/** Body of `POST /stt` (contracts.md, STT). */
export function presentTranscript(transcription: PresentedTranscription): PublicTranscript {
  const { request, audio, file, refined, settlement, processingMs } = transcription;
  return {
    text: refined?.text ?? file.text,
    language: file.language,
    language_source: languageSource(request, file),
    language_probability: file.languageProbability === null ? null : rounded(file.languageProbability, 4),
    duration: seconds(audio.durationMs),
    snr_db: file.snrDb === null ? null : rounded(file.snrDb, 1),
    warning_codes: warningsOf(transcription),
    words: request.includeWords
      ? file.segments.flatMap(({ words }) => words.map((word) => wordView(word, request)))
      : [],
    segments: file.segments.map(segmentView),
    speakers: request.diarize ? file.speakers : [],
    llm_applied: refined?.llmApplied ?? false,
    llm_reason: isContextDropped(request) ? 'llm_refinement_not_in_plan' : (refined?.llmReason ?? null),
    model: file.model,
    processing_time_ms: Math.round(processingMs),
    cost_usd: nanoToUsd(settlement.charge?.chargedNano ?? 0n),
  };
}

/** The free plan has no refinement, so its parameters are ignored. */
export function isContextDropped({ plan, context }: TranscribeRequest): boolean {
  return plan === 'free' && context !== null;
}

function languageSource({ languages }: TranscribeRequest, { isChunked }: RecognisedFile) {
  if (isChunked) return 'long_audio_chunked';
  return languages?.length === 1 ? 'requested' : 'detected';
}

function warningsOf({ request, audio, file }: PresentedTranscription): WarningCode[] {
  const isDropped = (reason: string) => file.unusable.some((unusable) => unusable === reason);
  const isEmpty = file.text === '';
  const warnings: [WarningCode, boolean][] = [
    ['low_snr_dropped', isEmpty && isDropped('low_snr_dropped')],
    ['low_snr_partial', !isEmpty && isDropped('low_snr_dropped')],
    ['no_speech_detected', isEmpty && !isDropped('low_snr_dropped') && !isDropped('hallucination_rejected')],
    ['hallucination_rejected', isDropped('hallucination_rejected')],
    ['audio_incomplete', audio.isIncomplete],
    ['keywords_not_boosted', file.ignoresKeywords],
    ['llm_refinement_not_in_plan', isContextDropped(request)],
  ];
  return warnings.filter(([, applies]) => applies).map(([code]) => code);
}

function segmentView(segment: RecognisedSegment, id: number): PublicSegment {
  const { chunkIndex, startMs, endMs, text, speaker, language } = segment;
  return {
    id,
    chunk_idx: chunkIndex,
    start: seconds(startMs),
    end: seconds(endMs),
    text,
    ...(speaker !== null && { speaker }),
    language,
  };
}

function wordView(word: RecognisedWord, { includeConfidence }: TranscriptOptions): WordOnWire {
  const { confidence, ...rest } = wordOnWire(word);
  return includeConfidence && confidence !== undefined ? { ...rest, confidence } : rest;
}

function rounded(value: number, digits: number): number {
  return Math.round(value * 10 ** digits) / 10 ** digits;
}
