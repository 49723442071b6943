import { Button, Card, Group, Select, Stack, Switch, Text, Title } from '@mantine/core';
import { Mic, Volume2 } from 'lucide-react';
import { useEffect, useState } from 'react';
import { notifyFailed } from '../parts/notify.ts';
import { deviceText } from '../text/phone.ts';
import { usePhone } from './agent-phone.ts';
import { audioContext } from './audio-context.ts';
import { type AudioSettings, changeAudioSettings } from './audio-settings.ts';
import { LevelBar } from './level-bar.tsx';
import { type LevelMeter, meterOf } from './level-meter.ts';
import { openMicrophone } from './microphone.ts';
import { playTestTone } from './ringer.ts';
import { type Device, useAudioSettings, useDevices } from './use-devices.ts';

/** Microphone, speaker and ringer, with a test of each. */
export function DevicesCard() {
  const settings = useAudioSettings();
  const { microphone } = usePhone();
  const [isTesting, setTesting] = useState(false);
  const { microphones, speakers } = useDevices(`${microphone} ${isTesting}`);
  const canChooseSpeaker = 'setSinkId' in HTMLMediaElement.prototype;
  const canChooseRinger = 'setSinkId' in AudioContext.prototype;
  return (
    <Card withBorder>
      <Title order={2} size="h5" mb="xs">
        {deviceText.title}
      </Title>
      <Stack gap="sm">
        <DeviceSelect
          label={deviceText.microphone}
          devices={microphones}
          chosen={settings.microphoneId}
          onChoose={(microphoneId) => changeAudioSettings({ microphoneId })}
        />
        <Switch
          label={deviceText.processed}
          description={deviceText.processedHint}
          checked={settings.isVoiceProcessed}
          onChange={({ currentTarget }) => changeAudioSettings({ isVoiceProcessed: currentTarget.checked })}
        />
        {isTesting && <MicrophoneTest settings={settings} onFailed={() => setTesting(false)} />}
        <Group>
          <Button
            variant="default"
            size="xs"
            leftSection={<Mic size={14} aria-hidden />}
            onClick={() => setTesting((was) => !was)}
          >
            {isTesting ? deviceText.stopTest : deviceText.test}
          </Button>
        </Group>
        {canChooseSpeaker ? (
          <DeviceSelect
            label={deviceText.speaker}
            devices={speakers}
            chosen={settings.speakerId}
            onChoose={(speakerId) => changeAudioSettings({ speakerId })}
          />
        ) : (
          <Text size="sm" c="dimmed">
            {deviceText.cannotChoose}
          </Text>
        )}
        {canChooseRinger && (
          <DeviceSelect
            label={deviceText.ringer}
            devices={speakers}
            chosen={settings.ringerId}
            onChoose={(ringerId) => changeAudioSettings({ ringerId })}
          />
        )}
        <Group>
          <Button
            variant="default"
            size="xs"
            leftSection={<Volume2 size={14} aria-hidden />}
            onClick={() => void playTestTone()}
          >
            {deviceText.tone}
          </Button>
        </Group>
      </Stack>
    </Card>
  );
}

interface DeviceSelectProps {
  label: string;
  devices: readonly Device[];
  chosen: string | null;
  onChoose: (id: string | null) => void;
}

const STANDARD = 'default';

function DeviceSelect({ label, devices, chosen, onChoose }: DeviceSelectProps) {
  const named = devices.filter((device) => device.label !== '');
  const isKnown = named.some(({ id }) => id === chosen);
  return (
    <Select
      label={label}
      data={[
        { value: STANDARD, label: deviceText.standard },
        ...named.map((device) => ({ value: device.id, label: device.label })),
      ]}
      value={isKnown ? chosen : STANDARD}
      onChange={(id) => onChoose(id === STANDARD ? null : id)}
      description={devices.length > 0 && named.length === 0 ? deviceText.allow : undefined}
      allowDeselect={false}
      size="sm"
    />
  );
}

/** Opens the microphone as a call would, and shows its level. */
function MicrophoneTest({ settings, onFailed }: { settings: AudioSettings; onFailed: () => void }) {
  const [meter, setMeter] = useState<LevelMeter | null>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the callback of the moment will do
  useEffect(() => {
    let isOver = false;
    let track: MediaStreamTrack | null = null;
    openMicrophone(settings).then(
      (opened) => {
        track = opened;
        if (isOver) track.stop();
        else setMeter(meterOf(audioContext(), track));
      },
      (error) => {
        notifyFailed(error);
        onFailed();
      },
    );
    return () => {
      isOver = true;
      track?.stop();
    };
  }, [settings]);
  return (
    <div>
      <Text size="sm" c="dimmed" mb={4}>
        {deviceText.testHint}
      </Text>
      <LevelBar icon={Mic} label={deviceText.level} level={() => meter?.level() ?? 0} />
    </div>
  );
}
