import { useMutation } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { GrowingAudio } from './growing-audio.ts';
import type { SpeechForm } from './speech-request.ts';
import { synthesise } from './speech-stream.ts';

/** Synthesises a form's text. The player may use `url` before the speech is complete. */
export function useSpeech() {
  const [url, setUrl] = useState<string | null>(null);
  const running = useRef<AbortController | null>(null);
  const replace = (next: string | null) => {
    setUrl((previous) => {
      if (previous !== null) URL.revokeObjectURL(previous);
      return next;
    });
  };
  const run = useMutation({
    mutationFn: async (form: SpeechForm) => {
      running.current?.abort();
      const controller = new AbortController();
      running.current = controller;
      const growing = form.isStreamed ? new GrowingAudio() : null;
      replace(growing?.url ?? null);
      const speech = await synthesise(form, {
        signal: controller.signal,
        ...(growing && { onAudio: (audio) => growing.append(audio) }),
      });
      growing?.complete();
      if (growing === null) replace(URL.createObjectURL(speech.playable));
      return { ...speech, encoding: form.encoding };
    },
    onError: () => replace(null),
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: only when the component goes
  useEffect(
    () => () => {
      running.current?.abort();
      replace(null);
    },
    [],
  );
  return { run, url, stop: () => running.current?.abort() };
}
