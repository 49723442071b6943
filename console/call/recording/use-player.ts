import { useCallback, useEffect, useMemo, useState } from 'react';

/** Update interval for following words in the transcript. */
const FOLLOW_MS = 60;

export interface Player {
  /** The audio element; null before it is mounted. */
  audio: HTMLAudioElement | null;
  setAudio: (element: HTMLAudioElement | null) => void;
  isPlaying: boolean;
  /** Seconds. */
  position: number;
  toggle: () => void;
  seek: (second: number) => void;
  playFrom: (second: number) => void;
  setSpeed: (factor: number) => void;
}

/** Controls an audio element and reports its position. */
export function usePlayer(): Player {
  const [audio, setAudio] = useState<HTMLAudioElement | null>(null);
  const [isPlaying, setIsPlaying] = useState(false);
  const [position, setPosition] = useState(0);

  useEffect(() => {
    if (audio === null) return;
    const listening = new AbortController();
    const { signal } = listening;
    const show = () => {
      setIsPlaying(!audio.paused && !audio.ended);
      setPosition(audio.currentTime);
    };
    for (const name of ['play', 'pause', 'ended', 'seeking', 'seeked', 'timeupdate']) {
      audio.addEventListener(name, show, { signal });
    }
    return () => listening.abort();
  }, [audio]);

  // `timeupdate` fires only four times a second.
  useEffect(() => {
    if (audio === null || !isPlaying) return;
    const timer = setInterval(() => setPosition(audio.currentTime), FOLLOW_MS);
    return () => clearInterval(timer);
  }, [audio, isPlaying]);

  const seek = useCallback(
    (second: number) => {
      if (audio === null) return;
      const end = Number.isFinite(audio.duration) ? audio.duration : second;
      audio.currentTime = Math.min(Math.max(0, second), end);
      setPosition(audio.currentTime);
    },
    [audio],
  );
  const controls = useMemo(() => {
    // A failure shows as the element's error.
    const play = () => void audio?.play().catch(() => undefined);
    return {
      toggle: () => (audio?.paused === false ? audio.pause() : play()),
      playFrom: (second: number) => {
        seek(second);
        play();
      },
      setSpeed: (factor: number) => {
        if (audio === null) return;
        audio.playbackRate = factor;
        // A renewed URL starts at the default.
        audio.defaultPlaybackRate = factor;
      },
    };
  }, [audio, seek]);
  return { audio, setAudio, isPlaying, position, seek, ...controls };
}
