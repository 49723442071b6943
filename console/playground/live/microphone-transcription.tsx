import { Alert, Box, Button, Group, Select, Text } from '@mantine/core';
import { Mic, MicOff, Square } from 'lucide-react';
import { type ReactNode, useEffect, useRef } from 'react';
import { useMay } from '../../app/session.ts';
import { EmptyState } from '../../parts/states.tsx';
import { StatusBadge } from '../../parts/status-badge.tsx';
import { playgroundText } from '../../text/playground.ts';
import { transcriptionText } from '../../text/speech.ts';
import { MicrophoneError } from '../audio/microphone.ts';
import { useDraft } from '../draft.ts';
import { costOf, type Fact, Facts } from '../facts.tsx';
import { Problem } from '../problem.tsx';
import { Workbench } from '../workbench.tsx';
import { audioFileOf, liveScriptOf } from './live-script.ts';
import type { LiveSettings, Phase } from './live-session.ts';
import type { Transcript } from './transcript.ts';
import { useTranscriptionOptions } from './transcription-form.tsx';
import { type LiveState, useLiveSession } from './use-live-session.ts';
import { UtteranceText } from './words.tsx';

const RUNNING: ReadonlySet<Phase> = new Set(['asking', 'connecting', 'listening', 'stopping']);

export function MicrophoneTranscription({ source }: { source: ReactNode }) {
  const { write } = useMay();
  const { options, fields } = useTranscriptionOptions();
  const [encoding, setEncoding] = useDraft<LiveSettings['encoding']>('transcription.encoding', 'linear');
  const { state, meter, start, stop } = useLiveSession();
  const settings: LiveSettings = { ...options, encoding };
  const isRunning = RUNNING.has(state.phase);
  const form = (
    <>
      {source}
      {fields}
      <Select
        label={transcriptionText.quality}
        data={Object.entries(transcriptionText.qualities).map(([value, label]) => ({ value, label }))}
        value={encoding}
        onChange={(value) => setEncoding((value ?? 'linear') as LiveSettings['encoding'])}
        allowDeselect={false}
      />
      {isRunning ? (
        <Button
          color="red"
          leftSection={<Square size={16} aria-hidden />}
          onClick={stop}
          loading={state.phase === 'stopping'}
        >
          {transcriptionText.stop}
        </Button>
      ) : (
        <Button leftSection={<Mic size={16} aria-hidden />} onClick={() => start(settings)} disabled={!write}>
          {transcriptionText.start}
        </Button>
      )}
    </>
  );
  return (
    <Workbench
      settings={form}
      service="stt"
      price={transcriptionText.price}
      code={liveScriptOf(settings, location.origin)}
      codeTitle={transcriptionText.script}
      codeHint={transcriptionText.scriptHint(audioFileOf(settings))}
    >
      <Group px="md" py="xs" gap="md" className="output-bar" wrap="nowrap">
        <StatusBadge tone={state.phase === 'listening' ? 'active' : 'neutral'}>
          {transcriptionText.phases[state.phase]}
        </StatusBadge>
        <Box
          ref={meter}
          className="level-meter"
          flex={1}
          maw={240}
          role="meter"
          aria-label={transcriptionText.level}
          aria-valuemin={0}
          aria-valuemax={100}
          aria-valuenow={0}
        >
          <div />
        </Box>
      </Group>
      <LiveOutput state={state} onRetry={() => start(settings)} />
    </Workbench>
  );
}

function LiveOutput({ state: { phase, transcript, failure }, onRetry }: { state: LiveState; onRetry: () => void }) {
  const hasWords = transcript.utterances.length > 0;
  if (failure instanceof MicrophoneError) return <MicrophoneProblem error={failure} onRetry={onRetry} />;
  if (failure && phase === 'ended' && !hasWords) {
    return <Problem error={failure} need="" onRetry={onRetry} />;
  }
  return (
    <>
      {failure && (
        <Alert color="red" m="md" role="alert">
          {failure.message}
        </Alert>
      )}
      <Warnings codes={transcript.warnings} />
      {hasWords ? <Utterances transcript={transcript} /> : <Silence />}
      {hasWords && <Facts facts={factsOfTranscript(transcript)} />}
    </>
  );
}

function Silence() {
  return (
    <EmptyState icon={Mic} title={transcriptionText.emptyTitle}>
      {transcriptionText.empty}
    </EmptyState>
  );
}

/** Follows the newest words unless the reader scrolled up. */
function Utterances({ transcript: { utterances } }: { transcript: Transcript }) {
  const log = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  // biome-ignore lint/correctness/useExhaustiveDependencies: new words make it longer
  useEffect(() => {
    if (log.current && isAtEnd.current) log.current.scrollTop = log.current.scrollHeight;
  }, [utterances]);
  return (
    <Box
      ref={log}
      className="output output-scroll"
      role="log"
      aria-label={transcriptionText.transcript}
      tabIndex={0}
      onScroll={({ currentTarget: { scrollTop, clientHeight, scrollHeight } }) => {
        isAtEnd.current = scrollTop + clientHeight > scrollHeight - 40;
      }}
    >
      {utterances.map((utterance) => (
        <UtteranceText key={utterance.id} utterance={utterance} />
      ))}
    </Box>
  );
}

export function Warnings({ codes }: { codes: readonly string[] }) {
  const known = codes.flatMap((code) => transcriptionText.warnings[code] ?? []);
  if (known.length === 0) return null;
  return (
    <Text size="sm" c="dimmed" px="md" pt="xs">
      {known.join(' ')}
    </Text>
  );
}

function MicrophoneProblem({ error, onRetry }: { error: MicrophoneError; onRetry: () => void }) {
  const { title, hint } = transcriptionText.microphoneProblems[error.problem];
  const again = (
    <Button variant="light" onClick={onRetry}>
      {transcriptionText.again}
    </Button>
  );
  return (
    <EmptyState icon={MicOff} title={title} role="alert" actions={again}>
      {hint}
    </EmptyState>
  );
}

function factsOfTranscript({ interimLagMs, finalLagMs, bill }: Transcript): Fact[] {
  const { latency, finalLatency, finalLatencyHint, duration } = transcriptionText;
  return [
    ...(interimLagMs === null ? [] : [[latency, playgroundText.ms(interimLagMs)] as const]),
    ...(finalLagMs === null ? [] : [[finalLatency, playgroundText.ms(finalLagMs), finalLatencyHint] as const]),
    ...(bill === null
      ? []
      : [[duration, playgroundText.seconds(bill.seconds)] as const, [playgroundText.cost, costOf(bill.usd)] as const]),
  ];
}
