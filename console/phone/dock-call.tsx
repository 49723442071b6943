import { Anchor, Button, Group, Stack, Text } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { Mic, Volume2 } from 'lucide-react';
import { useState } from 'react';
import { deviceText, microphoneText, phoneText } from '../text/phone.ts';
import { agentPhone } from './agent-phone.ts';
import { callActions } from './call-actions.ts';
import { AnswerButtons, HangUpButton, TalkControls } from './call-buttons.tsx';
import { callerOf, Duration, statusOf } from './call-status.tsx';
import { Keypad } from './keypad.tsx';
import { LevelBar } from './level-bar.tsx';
import { isFault, type PhoneCall, type PhoneState } from './phone-state.ts';
import { PlaybackHelp } from './playback-help.tsx';
import { QualityBadge } from './quality-badge.tsx';
import { TransferDialog } from './transfer-dialog.tsx';
import { TransferProgress } from './transfer-progress.tsx';

export function DockCall({ call, phone }: { call: PhoneCall; phone: PhoneState }) {
  const [isKeypadOpen, setKeypadOpen] = useState(false);
  const [isTransferring, setTransferring] = useState(false);
  return (
    <div className="dock-row" data-phase={call.phase}>
      <div className="dock-who">
        <Group gap="xs" wrap="nowrap">
          <Anchor component={Link} to="/phone" fw={600} truncate title={phoneText.toPhone}>
            {callerOf(call)}
          </Anchor>
          <Text size="sm" component="div">
            <Duration progress={call.progress} />
          </Text>
        </Group>
        <Text size="xs" c="dimmed" role="status" truncate>
          {statusOf(call, phone)}
        </Text>
      </div>
      {isFault(phone.microphone) && (
        <Button size="xs" variant="default" onClick={callActions.answer}>
          {microphoneText.retry}
        </Button>
      )}
      <PlaybackHelp phone={phone} />
      {call.phase === 'ringing' ? (
        <Group gap="xs" wrap="nowrap">
          <AnswerButtons size="sm" />
        </Group>
      ) : (
        <>
          <Stack gap={4} className="dock-levels" visibleFrom="sm">
            <LevelBar icon={Mic} label={deviceText.level} level={() => agentPhone.levels().microphone} />
            <LevelBar icon={Volume2} label={deviceText.farLevel} level={() => agentPhone.levels().far} />
          </Stack>
          <QualityBadge quality={phone.quality} isCompact />
          <Group gap={6} wrap="nowrap">
            <TalkControls
              call={call}
              isCompact
              isKeypadOpen={isKeypadOpen}
              onKeypad={() => setKeypadOpen((isOpen) => !isOpen)}
              onTransfer={() => setTransferring(true)}
            />
            <HangUpButton call={call} size="sm" px="sm" />
          </Group>
          <TransferProgress call={call} />
        </>
      )}
      {isKeypadOpen && (
        <div className="dock-keypad">
          <Keypad />
        </div>
      )}
      <TransferDialog isOpen={isTransferring} onClose={() => setTransferring(false)} />
    </div>
  );
}
