import { Button, Group } from '@mantine/core';
import { Download, Volume2 } from 'lucide-react';
import { useEffect, useRef, useState } from 'react';
import { EmptyState } from '../../parts/states.tsx';
import { playgroundText } from '../../text/playground.ts';
import { speechText } from '../../text/speech.ts';
import { curlOf } from '../command.ts';
import { Facts, factsOf } from '../facts.tsx';
import { Output } from '../output.tsx';
import { Problem } from '../problem.tsx';
import { Workbench } from '../workbench.tsx';
import { useSpeechForm } from './speech-form.tsx';
import { FILES, lengthOf, MAX_CHARACTERS, speechCommandOf } from './speech-request.ts';
import type { SpokenWord } from './speech-stream.ts';
import { useSpeech } from './use-speech.ts';

export function SpeechTab() {
  const { form, fields } = useSpeechForm();
  const { run, url, stop } = useSpeech();
  return (
    <Workbench
      settings={fields}
      service="tts"
      price={speechText.price}
      run={speechText.synthesise}
      isRunning={run.isPending}
      isReady={form.text.trim() !== '' && lengthOf(form) <= MAX_CHARACTERS}
      onRun={() => run.mutate(form)}
      onStop={stop}
      code={curlOf(speechCommandOf(form), location.origin)}
      codeTitle={playgroundText.command}
    >
      <SpeechOutput run={run} url={url} />
    </Workbench>
  );
}

function SpeechOutput({ run: { data, error, isPending }, url }: Pick<ReturnType<typeof useSpeech>, 'run' | 'url'>) {
  const player = useRef<HTMLAudioElement>(null);
  const spoken = useSpokenWord(player, data?.words ?? NO_WORDS);
  if (error && error.name !== 'AbortError') return <Problem error={error} need="" />;
  if (url === null) {
    return (
      <EmptyState icon={Volume2} title={isPending ? playgroundText.running : speechText.emptyTitle}>
        {speechText.empty}
      </EmptyState>
    );
  }
  return (
    <>
      <Group p="md" className="output-bar" wrap="nowrap">
        {/* biome-ignore lint/a11y/useMediaCaption: the words are below it */}
        <audio ref={player} src={url} controls autoPlay aria-label={speechText.player} className="player" />
        {data && <DownloadButton file={data.file} ending={FILES[data.encoding].ending} />}
      </Group>
      <Output label={speechText.words}>
        {data?.words.map(({ word }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: words are never reordered
          <span key={index} className="spoken-word" data-spoken={index === spoken || undefined}>
            {`${word} `}
          </span>
        ))}
      </Output>
      {data && (
        <Facts
          facts={[
            [speechText.duration, playgroundText.seconds(data.durationS)],
            [speechText.characters, String(data.characters)],
            [speechText.firstAudio, playgroundText.ms(data.firstAudioMs)],
            ...factsOf(data),
          ]}
        />
      )}
    </>
  );
}

const NO_WORDS: readonly SpokenWord[] = [];

/** Index of the word being spoken; -1: none. */
function useSpokenWord(player: { current: HTMLAudioElement | null }, words: readonly SpokenWord[]): number {
  const [spoken, setSpoken] = useState(-1);
  useEffect(() => {
    const audio = player.current;
    if (audio === null || words.length === 0) return;
    let frame = 0;
    const look = () => {
      const at = audio.currentTime;
      setSpoken(audio.paused ? -1 : words.findIndex(({ start, end }) => at >= start && at < end));
      if (!audio.paused) frame = requestAnimationFrame(look);
    };
    audio.addEventListener('play', look);
    audio.addEventListener('pause', look);
    look();
    return () => {
      audio.removeEventListener('play', look);
      audio.removeEventListener('pause', look);
      cancelAnimationFrame(frame);
    };
  }, [player, words]);
  return spoken;
}

function DownloadButton({ file, ending }: { file: Blob; ending: string }) {
  const [href, setHref] = useState<string>();
  useEffect(() => {
    const url = URL.createObjectURL(file);
    setHref(url);
    return () => URL.revokeObjectURL(url);
  }, [file]);
  return (
    <Button
      component="a"
      href={href}
      download={`speech.${ending}`}
      variant="default"
      leftSection={<Download size={16} aria-hidden />}
    >
      {speechText.download}
    </Button>
  );
}
