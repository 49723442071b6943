import { useEffect, useState, useSyncExternalStore } from 'react';
import { type AudioSettings, audioSettings, watchAudioSettings } from './audio-settings.ts';

export interface Device {
  id: string;
  /** Empty until the user allows the microphone. */
  label: string;
}

interface Devices {
  microphones: Device[];
  speakers: Device[];
}

const NONE: Devices = { microphones: [], speakers: [] };

export function useAudioSettings(): AudioSettings {
  return useSyncExternalStore(watchAudioSettings, audioSettings);
}

/** Current audio devices. A change of `key` reads them again, because permission reveals their names. */
export function useDevices(key: unknown): Devices {
  const [devices, setDevices] = useState(NONE);
  // biome-ignore lint/correctness/useExhaustiveDependencies: names show once the microphone is allowed
  useEffect(() => {
    const media = navigator.mediaDevices;
    if (!media) return;
    let isShown = true;
    const look = async () => {
      const all = await media.enumerateDevices().catch(() => []);
      if (isShown) setDevices({ microphones: listed(all, 'audioinput'), speakers: listed(all, 'audiooutput') });
    };
    void look();
    media.addEventListener('devicechange', look);
    return () => {
      isShown = false;
      media.removeEventListener('devicechange', look);
    };
  }, [key]);
  return devices;
}

/** Excludes the browser's aliases of the default device. */
function listed(all: readonly MediaDeviceInfo[], kind: MediaDeviceKind): Device[] {
  return all
    .filter((device) => device.kind === kind && !['', 'default', 'communications'].includes(device.deviceId))
    .map(({ deviceId: id, label }) => ({ id, label }));
}
