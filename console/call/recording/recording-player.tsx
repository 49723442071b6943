import { ActionIcon, Alert, Group, NativeSelect, Paper, Skeleton, Text } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { Download, Pause, Play } from 'lucide-react';
import { type KeyboardEvent, lazy, Suspense, useEffect, useRef, useState } from 'react';
import { patiently } from '../../app/load.ts';
import { ownMediaUrl } from '../../app/media-url.ts';
import { duration } from '../../parts/format.ts';
import { notifyFailed } from '../../parts/notify.ts';
import { recordingText } from '../../text/call.ts';
import { mintRecording, type Recording, recordingQuery } from '../queries.ts';
import { channelsOf, type PeaksFile } from './peaks.ts';
import type { Player } from './use-player.ts';

const Waveform = lazy(() => patiently(() => import('./waveform.tsx')));
const STEP_S = 5;
const SPEEDS = [0.75, 1, 1.25, 1.5, 2];

interface RecordingPlayerProps {
  callId: string;
  recording: Recording;
  player: Player;
}

/** Waveform and controls. When the presigned URL expires, it requests another and resumes at the same position. */
export function RecordingPlayer({ callId, recording, player }: RecordingPlayerProps) {
  const { audio, setAudio, isPlaying, position, toggle, seek, setSpeed } = player;
  const lengthS = (recording.recording_duration_ms ?? 0) / 1000;
  const peaks = useQuery({
    queryKey: ['call', callId, 'peaks'],
    enabled: recording.peaks_url !== null,
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: ({ signal }) => loadPeaks(ownMediaUrl(recording.peaks_url!, location.origin), signal),
  });
  const source = ownMediaUrl(recording.playback_url, location.origin);
  const hasFailed = useRenewal({ callId, player, source });
  const onKeyDown = (event: KeyboardEvent) => {
    const target = { ArrowLeft: position - STEP_S, ArrowRight: position + STEP_S, Home: 0, End: lengthS }[event.key];
    if (event.key === ' ') toggle();
    else if (target !== undefined) seek(target);
    else return;
    event.preventDefault();
  };
  const label = recordingText.of(duration(position), duration(lengthS));
  return (
    <Paper withBorder p="md">
      {/* biome-ignore lint/a11y/useMediaCaption: the transcript beside it is the caption */}
      <audio ref={setAudio} src={source} preload="metadata" />
      <div
        role="slider"
        tabIndex={0}
        aria-label={recordingText.waveform}
        aria-valuemin={0}
        aria-valuemax={Math.round(lengthS)}
        aria-valuenow={Math.min(Math.round(position), Math.round(lengthS))}
        aria-valuetext={label}
        onKeyDown={onKeyDown}
        className="waveform"
      >
        {audio === null || (peaks.isPending && recording.peaks_url !== null) ? (
          <Skeleton height={112} />
        ) : (
          <Suspense fallback={<Skeleton height={112} />}>
            <Waveform audio={audio} peaks={peaks.data ?? null} durationS={lengthS} />
          </Suspense>
        )}
      </div>
      <Group mt="sm" gap="sm">
        <ActionIcon
          size="lg"
          radius="xl"
          variant="filled"
          onClick={toggle}
          aria-label={isPlaying ? recordingText.pause : recordingText.play}
        >
          {isPlaying ? <Pause size={18} /> : <Play size={18} />}
        </ActionIcon>
        <Text size="sm" className="tabular" role="timer" aria-label={recordingText.position}>
          {duration(position)} / {duration(lengthS)}
        </Text>
        <NativeSelect
          size="xs"
          aria-label={recordingText.speed}
          defaultValue="1"
          onChange={({ currentTarget }) => setSpeed(Number(currentTarget.value))}
          data={SPEEDS.map((speed) => ({ value: String(speed), label: recordingText.times(speed) }))}
        />
        <DownloadButton callId={callId} />
        <Text size="xs" c="dimmed" visibleFrom="sm" ml="auto">
          {recordingText.keys}
        </Text>
      </Group>
      {hasFailed && (
        <Alert color="red" mt="sm">
          {recordingText.playFailed}
        </Alert>
      )}
    </Paper>
  );
}

/** Requests a URL of its own, because that of the player may have expired. */
function DownloadButton({ callId }: { callId: string }) {
  const download = useMutation({
    mutationFn: () => mintRecording(callId),
    onError: notifyFailed,
    onSuccess({ playback_url: url }) {
      const link = document.createElement('a');
      link.href = ownMediaUrl(url, location.origin);
      link.download = `${callId}.wav`;
      // Browsers open files of other origins, such as a bucket. In place of this page, that would end a phone's call.
      if (link.origin !== location.origin) link.target = '_blank';
      link.click();
    },
  });
  return (
    <ActionIcon
      variant="default"
      aria-label={recordingText.download}
      loading={download.isPending}
      onClick={() => download.mutate()}
    >
      <Download size={16} />
    </ActionIcon>
  );
}

/** When the audio fails, requests another URL once and resumes at the same second. Returns whether that failed too. */
function useRenewal({ callId, player, source }: { callId: string; player: Player; source: string }): boolean {
  const { refetch } = useQuery(recordingQuery(callId));
  const resumeAt = useRef<{ second: number; isPlaying: boolean } | null>(null);
  const failedSource = useRef<string | null>(null);
  const [hasFailed, setHasFailed] = useState(false);
  const { audio } = player;
  useEffect(() => {
    if (audio === null) return;
    const renew = () => {
      // The renewed URL fails as well.
      if (resumeAt.current !== null || failedSource.current === source) return setHasFailed(true);
      failedSource.current = source;
      resumeAt.current = { second: audio.currentTime, isPlaying: !audio.paused };
      void refetch().then(({ isError, data }) => {
        if (data !== undefined && !isError) {
          // Two URLs that are signed within a second are the same.
          if (ownMediaUrl(data.playback_url, location.origin) === source) audio.load();
          return;
        }
        // The next attempt to play may renew again.
        resumeAt.current = null;
        failedSource.current = null;
        setHasFailed(true);
      });
    };
    const resume = () => {
      setHasFailed(false);
      if (resumeAt.current === null) return;
      audio.currentTime = resumeAt.current.second;
      if (resumeAt.current.isPlaying) void audio.play().catch(() => undefined);
      resumeAt.current = null;
    };
    audio.addEventListener('error', renew);
    audio.addEventListener('loadedmetadata', resume);
    return () => {
      audio.removeEventListener('error', renew);
      audio.removeEventListener('loadedmetadata', resume);
    };
  }, [audio, source, refetch]);
  return hasFailed;
}

/** Null if they cannot be read. The player then decodes the audio itself. */
async function loadPeaks(url: string, signal: AbortSignal): Promise<Float32Array[] | null> {
  try {
    const response = await fetch(url, { signal });
    return response.ok ? channelsOf((await response.json()) as PeaksFile) : null;
  } catch {
    return null;
  }
}
