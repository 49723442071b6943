import { useComputedColorScheme } from '@mantine/core';
import { useEffect, useRef } from 'react';
import WaveSurfer from 'wavesurfer.js';
import { styleNonce } from '../../app/theme.ts';

const CHANNEL_PX = 56;
/** Agent, customer: the played part and the rest. */
const COLORS = {
  light: [
    { progressColor: '#1864ab', waveColor: '#a3c9ee' },
    { progressColor: '#087f5b', waveColor: '#96f2d7' },
  ],
  dark: [
    { progressColor: '#73ace4', waveColor: '#40709d' },
    { progressColor: '#38d9a9', waveColor: '#2c7f6b' },
  ],
};

interface WaveformProps {
  audio: HTMLAudioElement;
  /** Null: decoded from the audio. */
  peaks: Float32Array[] | null;
  durationS: number;
}

/** Draws both channels of the audio, and seeks on a click. Lazy-loaded. */
export default function Waveform({ audio, peaks, durationS }: WaveformProps) {
  const container = useRef<HTMLDivElement>(null);
  const scheme = useComputedColorScheme('light');
  useEffect(() => {
    const drawn = WaveSurfer.create({
      container: container.current!,
      media: audio,
      ...(peaks && { peaks, duration: durationS }),
      splitChannels: COLORS[scheme].map((colors) => ({ ...colors, height: CHANNEL_PX })),
      cursorColor: scheme === 'light' ? '#212529' : '#f8f9fa',
      cursorWidth: 1,
      barWidth: 2,
      barGap: 1,
      barRadius: 1,
      normalize: true,
      dragToSeek: true,
      cspNonce: styleNonce(),
    });
    return () => drawn.destroy();
  }, [audio, peaks, durationS, scheme]);
  return <div ref={container} />;
}
