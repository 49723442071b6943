import { Button, Grid, Stack } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { CircleAlert, Disc, Hourglass, type LucideIcon, MicOff, Trash2 } from 'lucide-react';
import { Loaded } from '../../parts/loaded.tsx';
import { EmptyState } from '../../parts/states.tsx';
import { recordingText } from '../../text/call.ts';
import type { Call } from '../call-data.ts';
import { callQuery, recordingQuery } from '../queries.ts';
import { RecordingPlayer } from './recording-player.tsx';
import { TranscriptPanel } from './transcript-panel.tsx';
import { usePlayer } from './use-player.ts';

/** The recording and its transcript, if they exist. */
export function RecordingTab({ call }: { call: Call }) {
  const player = usePlayer();
  const isPlayable = call.recording_available;
  return (
    <Grid gap="md">
      <Grid.Col span={{ base: 12, lg: 7 }}>
        {isPlayable ? <Playable call={call} player={player} /> : <NotPlayable call={call} />}
      </Grid.Col>
      <Grid.Col span={{ base: 12, lg: 5 }}>
        <TranscriptPanel
          call={call}
          position={isPlayable ? player.position : null}
          onJump={isPlayable ? player.playFrom : null}
        />
      </Grid.Col>
    </Grid>
  );
}

function Playable({ call, player }: { call: Call; player: ReturnType<typeof usePlayer> }) {
  const query = useQuery(recordingQuery(call.call_id));
  return (
    <Loaded query={query}>
      {(recording) => <RecordingPlayer callId={call.call_id} recording={recording} player={player} />}
    </Loaded>
  );
}

/** Polling interval while a recording is being stored, because no event reports its end. */
const LOOK_AGAIN_MS = 2_000;

function NotPlayable({ call }: { call: Call }) {
  const isStoring = call.record_requested && call.call_done && !ENDED.has(call.recording_status ?? '');
  const { refetch, isFetching } = useQuery({
    ...callQuery(call.call_id),
    refetchInterval: isStoring && isRecent(call) ? LOOK_AGAIN_MS : false,
  });
  if (!call.record_requested)
    return <State icon={MicOff} title={recordingText.notRequestedTitle} text={recordingText.notRequested} />;
  if (!call.call_done) return <State icon={Disc} title={recordingText.liveTitle} text={recordingText.live} />;
  if (call.recording_status === 'failed') {
    return <State icon={CircleAlert} title={recordingText.failedTitle} text={recordingText.failed} />;
  }
  if (call.recording_status === 'deleted') {
    return <State icon={Trash2} title={recordingText.deletedTitle} text={recordingText.deleted} />;
  }
  if (call.talk_seconds === null || call.talk_seconds === 0) {
    return <State icon={MicOff} title={recordingText.noTalkTitle} text={recordingText.noTalk} />;
  }
  return (
    <Stack align="center">
      <State icon={Hourglass} title={recordingText.storingTitle} text={recordingText.storing} />
      <Button variant="light" loading={isFetching} onClick={() => void refetch()}>
        {recordingText.checkAgain}
      </Button>
    </Stack>
  );
}

const ENDED = new Set(['uploaded', 'failed', 'deleted']);

function isRecent({ end_time: end }: Call): boolean {
  return end !== null && Date.now() - Date.parse(end) < 60_000;
}

function State({ icon, title, text }: { icon: LucideIcon; title: string; text: string }) {
  return (
    <EmptyState icon={icon} title={title}>
      {text}
    </EmptyState>
  );
}
