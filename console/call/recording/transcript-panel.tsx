import { Alert, Paper, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { duration } from '../../parts/format.ts';
import { LoadingState } from '../../parts/states.tsx';
import { transcriptText } from '../../text/call.ts';
import { roleText } from '../../text/call-words.ts';
import type { Call } from '../call-data.ts';
import { type Segment, type Transcript, transcriptQuery } from '../queries.ts';
import './transcript.css';

interface TranscriptPanelProps {
  call: Pick<Call, 'call_id' | 'call_done' | 'transcribe_requested'>;
  /** Seconds of the recording; null while nothing plays. */
  position: number | null;
  /** Null: there is no recording to seek in. */
  onJump: ((second: number) => void) | null;
}

/** The transcript, which follows the recording and seeks in it. It grows during a live call. */
export function TranscriptPanel({ call, position, onJump }: TranscriptPanelProps) {
  const query = useQuery({ ...transcriptQuery(call.call_id), enabled: call.transcribe_requested });
  return (
    <Paper withBorder p="md" component="section" aria-label={transcriptText.title} h="100%">
      <Title order={2} size="h6" mb="xs">
        {transcriptText.title}
      </Title>
      {!call.transcribe_requested ? (
        <Note>{transcriptText.none}</Note>
      ) : query.data ? (
        <Segments transcript={query.data} isLive={!call.call_done} position={position} onJump={onJump} />
      ) : query.error ? (
        <Note>{query.error.message}</Note>
      ) : (
        <LoadingState />
      )}
    </Paper>
  );
}

interface SegmentsProps extends Pick<TranscriptPanelProps, 'position' | 'onJump'> {
  transcript: Transcript;
  isLive: boolean;
}

function Segments({ transcript: { segments, status, error }, isLive, position, onJump }: SegmentsProps) {
  const list = useRef<HTMLOListElement>(null);
  const current = position === null ? -1 : segments.findLastIndex(({ start }) => start <= position);
  const followed = isLive ? segments.length - 1 : current;
  useEffect(() => {
    const item = list.current?.children[followed];
    if (!(item instanceof HTMLElement) || list.current === null) return;
    const middle = item.offsetTop - list.current.clientHeight / 2 + item.clientHeight / 2;
    list.current.scrollTo({ top: middle, behavior: 'smooth' });
  }, [followed]);
  return (
    <>
      {status === 'failed' && (
        <Alert color="yellow" p="xs" mb="xs">
          {transcriptText.failed(error ?? status)}
        </Alert>
      )}
      {segments.length === 0 && <Note>{isLive ? transcriptText.running : transcriptText.silent}</Note>}
      <ol ref={list} className="transcript" aria-label={transcriptText.title} aria-live={isLive ? 'polite' : undefined}>
        {segments.map((segment, index) => (
          <li
            key={`${segment.leg}-${segment.start}`}
            data-role={segment.role}
            data-current={index === current || undefined}
          >
            <SegmentHead segment={segment} onJump={onJump} />
            <Words segment={segment} position={index === current ? position : null} onJump={onJump} />
          </li>
        ))}
      </ol>
    </>
  );
}

function SegmentHead({ segment: { role, start }, onJump }: { segment: Segment; onJump: SegmentsProps['onJump'] }) {
  const time = duration(start);
  const head = (
    <>
      <b>{roleText[role]}</b> <span className="tabular">{time}</span>
    </>
  );
  if (onJump === null) return <div className="transcript-head">{head}</div>;
  return (
    <button type="button" className="transcript-head" onClick={() => onJump(start)} title={transcriptText.jump(time)}>
      {head}
    </button>
  );
}

interface WordsProps extends Pick<SegmentsProps, 'onJump'> {
  segment: Segment;
  /** Null unless the recording plays. */
  position: number | null;
}

/** A click on a word plays from it; by keyboard, the time above each segment does. */
function Words({ segment: { text, words, start }, position, onJump }: WordsProps) {
  const jumpTo = (target: EventTarget) => {
    const at = target instanceof HTMLElement ? Number(target.dataset.start ?? start) : start;
    onJump?.(at);
  };
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the button of the segment does the same
    <p className={onJump ? 'transcript-words' : undefined} onClick={({ target }) => jumpTo(target)}>
      {words.length === 0
        ? text
        : words.map(({ word, start: from, end }) => (
            <span
              key={from}
              data-start={from}
              data-spoken={(position !== null && from <= position && position < end) || undefined}
            >
              {word}{' '}
            </span>
          ))}
    </p>
  );
}

function Note({ children }: { children: string }) {
  return (
    <Text size="sm" c="dimmed">
      {children}
    </Text>
  );
}
