import { ActionIcon, Button, type ButtonProps, Tooltip, UnstyledButton } from '@mantine/core';
import { ArrowRightLeft, Grid3x3, type LucideIcon, Mic, MicOff, Pause, Phone, PhoneOff, Play } from 'lucide-react';
import { callText } from '../text/phone.ts';
import { callActions, canControl, isOnHold } from './call-actions.ts';
import type { PhoneCall } from './phone-state.ts';

interface ControlProps {
  icon: LucideIcon;
  label: string;
  onClick: () => void;
  /** State of a switch. */
  isOn?: boolean;
  isDisabled?: boolean;
  /** Shows only the icon, with the label as a tooltip. */
  isCompact: boolean;
}

function Control({ icon: Icon, label, onClick, isOn, isDisabled = false, isCompact }: ControlProps) {
  if (isCompact) {
    return (
      <Tooltip label={label}>
        <ActionIcon
          variant={isOn ? 'filled' : 'default'}
          size="lg"
          onClick={onClick}
          aria-label={label}
          disabled={isDisabled}
        >
          <Icon size={18} aria-hidden />
        </ActionIcon>
      </Tooltip>
    );
  }
  return (
    <UnstyledButton className="call-control" data-on={isOn || undefined} onClick={onClick} disabled={isDisabled}>
      <Icon size={22} aria-hidden />
      <span>{label}</span>
    </UnstyledButton>
  );
}

interface TalkControlsProps {
  call: PhoneCall;
  isCompact?: boolean;
  isKeypadOpen: boolean;
  onKeypad: () => void;
  onTransfer: () => void;
}

/** Mute, hold, keypad, transfer. */
export function TalkControls({ call, isCompact = false, isKeypadOpen, onKeypad, onTransfer }: TalkControlsProps) {
  const isHolding = isOnHold(call);
  const mayControl = canControl(call);
  return (
    <>
      <Control
        icon={call.isMuted ? MicOff : Mic}
        label={call.isMuted ? callText.unmute : callText.mute}
        isOn={call.isMuted}
        isCompact={isCompact}
        onClick={callActions.toggleMute}
      />
      <Control
        icon={isHolding ? Play : Pause}
        label={isHolding ? callText.resume : callText.hold}
        isOn={isHolding}
        isDisabled={!mayControl || call.progress.transfer !== null}
        isCompact={isCompact}
        onClick={() => void callActions.toggleHold()}
      />
      <Control
        icon={Grid3x3}
        label={callText.keypad}
        isOn={isKeypadOpen}
        isDisabled={!mayControl}
        isCompact={isCompact}
        onClick={onKeypad}
      />
      <Control
        icon={ArrowRightLeft}
        label={callText.transfer}
        isDisabled={!mayControl || call.progress.transfer !== null}
        isCompact={isCompact}
        onClick={onTransfer}
      />
    </>
  );
}

export function AnswerButtons(props: ButtonProps) {
  return (
    <>
      <Button color="green" leftSection={<Phone size={18} aria-hidden />} onClick={callActions.answer} {...props}>
        {callText.answer}
      </Button>
      <Button color="red" leftSection={<PhoneOff size={18} aria-hidden />} onClick={callActions.hangUp} {...props}>
        {callText.reject}
      </Button>
    </>
  );
}

export function HangUpButton({ call, ...props }: { call: PhoneCall } & ButtonProps) {
  return (
    <Button
      color="red"
      leftSection={<PhoneOff size={18} aria-hidden />}
      onClick={callActions.hangUp}
      loading={call.phase === 'ending'}
      {...props}
    >
      {callText.hangUp}
    </Button>
  );
}
