import { Text } from '@mantine/core';
import { memo } from 'react';
import { percent } from '../../parts/format.ts';
import { transcriptionText } from '../../text/speech.ts';
import { type Segment, segmentsOf, type Utterance, type Word } from './transcript.ts';

const UNSURE = 0.5;

/** An utterance, grey until final. Hovering over a final word shows its confidence and time. */
export const UtteranceText = memo(function UtteranceText({ utterance }: { utterance: Utterance }) {
  const { text, words, isFinal, mode } = utterance;
  const note = transcriptionText.modes[mode];
  if (!isFinal) {
    return (
      <p className="interim" aria-live="off">
        {text}
      </p>
    );
  }
  return (
    <div>
      {text !== '' && <Words text={text} words={words} />}
      {note && (
        <Text size="xs" c="dimmed">
          {note}
        </Text>
      )}
    </div>
  );
});

/** A text with its words, one paragraph per speaker turn. */
export function Words({ text, words }: { text: string; words: readonly Word[] }) {
  const segments = segmentsOf(text, words) ?? [{ text, word: null }];
  return turnsOf(segments).map(({ speaker, segments: spoken }, turn) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: turns are never reordered
    <p key={turn}>
      {speaker !== null && (
        <Text size="xs" c="dimmed" fw={600}>
          {transcriptionText.speaker(speaker)}
        </Text>
      )}
      {spoken.map(({ text: stretch, word }, index) =>
        word === null ? (
          stretch
        ) : (
          // biome-ignore lint/suspicious/noArrayIndexKey: words are never reordered
          <span key={index} title={aboutWord(word)} className={isUnsure(word) ? 'unsure-word' : undefined}>
            {stretch}
          </span>
        ),
      )}
    </p>
  ));
}

interface Turn {
  speaker: string | null;
  segments: Segment[];
}

function turnsOf(segments: readonly Segment[]): Turn[] {
  const turns: Turn[] = [];
  for (const segment of segments) {
    const speaker = segment.word?.speaker ?? null;
    const last = turns.at(-1);
    const isNext = last === undefined || (segment.word !== null && speaker !== last.speaker);
    if (isNext) turns.push({ speaker, segments: [segment] });
    else last.segments.push(segment);
  }
  return turns;
}

function isUnsure({ confidence }: Word): boolean {
  return confidence !== undefined && confidence < UNSURE;
}

function aboutWord({ confidence, start, end, original }: Word): string {
  return [
    ...(confidence === undefined ? [] : [transcriptionText.confidence(percent(confidence))]),
    transcriptionText.at(start.toFixed(2), end.toFixed(2)),
    ...(original === undefined ? [] : [transcriptionText.insteadOf(original)]),
  ].join('. ');
}
