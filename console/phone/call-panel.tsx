import { Card, Group, SimpleGrid, Stack, Text } from '@mantine/core';
import { Mic, Volume2 } from 'lucide-react';
import { useState } from 'react';
import { callText, deviceText } from '../text/phone.ts';
import { agentPhone } from './agent-phone.ts';
import { callActions } from './call-actions.ts';
import { AnswerButtons, HangUpButton, TalkControls } from './call-buttons.tsx';
import { callerOf, Duration, statusOf } from './call-status.tsx';
import { Keypad } from './keypad.tsx';
import { LevelBar } from './level-bar.tsx';
import { MicrophoneHelp } from './microphone-help.tsx';
import type { PhoneCall, PhoneState } from './phone-state.ts';
import { PlaybackHelp } from './playback-help.tsx';
import { QualityBadge } from './quality-badge.tsx';
import { TransferDialog } from './transfer-dialog.tsx';
import { TransferProgress } from './transfer-progress.tsx';

export function CallPanel({ call, phone }: { call: PhoneCall; phone: PhoneState }) {
  const [isKeypadOpen, setKeypadOpen] = useState(false);
  const [isTransferring, setTransferring] = useState(false);
  const isRinging = call.phase === 'ringing';
  return (
    <Card withBorder className="call-panel" data-phase={call.phase}>
      <Stack gap="md">
        <div>
          <Group justify="space-between" wrap="nowrap" gap="xs">
            <Text size="sm" fw={600} role="status">
              {statusOf(call, phone)}
            </Text>
            <Text size="lg" fw={600} component="div">
              <Duration progress={call.progress} />
            </Text>
          </Group>
          <Text className="caller" title={callerOf(call)!}>
            {callerOf(call)}
          </Text>
          <Text size="xs" c="dimmed" truncate title={call.referenceId}>
            {callText.reference(call.referenceId)}
          </Text>
        </div>
        <MicrophoneHelp status={phone.microphone} onRetry={callActions.answer} />
        <PlaybackHelp phone={phone} />
        {isRinging ? (
          <SimpleGrid cols={2}>
            <AnswerButtons size="lg" px="xs" />
          </SimpleGrid>
        ) : (
          <>
            <Levels />
            <SimpleGrid cols={4} spacing="xs">
              <TalkControls
                call={call}
                isKeypadOpen={isKeypadOpen}
                onKeypad={() => setKeypadOpen((isOpen) => !isOpen)}
                onTransfer={() => setTransferring(true)}
              />
            </SimpleGrid>
            {isKeypadOpen && <Keypad />}
            <TransferProgress call={call} />
            <HangUpButton call={call} size="lg" />
            <QualityBadge quality={phone.quality} />
          </>
        )}
      </Stack>
      <TransferDialog isOpen={isTransferring} onClose={() => setTransferring(false)} />
    </Card>
  );
}

function Levels() {
  return (
    <Stack gap={6}>
      <LevelBar icon={Mic} label={deviceText.level} level={() => agentPhone.levels().microphone} />
      <LevelBar icon={Volume2} label={deviceText.farLevel} level={() => agentPhone.levels().far} />
    </Stack>
  );
}
