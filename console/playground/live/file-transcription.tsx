import { Button, FileButton, Text } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { FileAudio } from 'lucide-react';
import { type ReactNode, useState } from 'react';
import { api } from '../../app/api.ts';
import { EmptyState, LoadingState } from '../../parts/states.tsx';
import { playgroundText } from '../../text/playground.ts';
import { transcriptionText } from '../../text/speech.ts';
import { charged } from '../charged.ts';
import { curlOf } from '../command.ts';
import { type Fact, Facts, factsOf } from '../facts.tsx';
import { Output } from '../output.tsx';
import { Problem } from '../problem.tsx';
import { Workbench } from '../workbench.tsx';
import { Warnings } from './microphone-transcription.tsx';
import { type TranscriptionOptions, useTranscriptionOptions } from './transcription-form.tsx';
import { Words } from './words.tsx';

export function FileTranscription({ source }: { source: ReactNode }) {
  const { options, fields } = useTranscriptionOptions();
  const [file, setFile] = useState<File | null>(null);
  const run = useMutation({ mutationFn: async (chosen: File) => await transcribe(chosen, options) });
  const form = (
    <>
      {source}
      <FileField file={file} onChange={setFile} />
      {fields}
    </>
  );
  const command = {
    method: 'POST' as const,
    path: '/stt',
    form: [['file', { file: file?.name ?? 'recording.wav' }] as const, ...Object.entries(fieldsOf(options))],
  };
  return (
    <Workbench
      settings={form}
      service="stt"
      price={transcriptionText.filePrice}
      run={transcriptionText.transcribe}
      isRunning={run.isPending}
      isReady={file !== null}
      onRun={() => file && run.mutate(file)}
      code={curlOf(command, location.origin)}
      codeTitle={playgroundText.command}
    >
      <FileOutput run={run} />
    </Workbench>
  );
}

/** A file field for keyboard and drag and drop. */
function FileField({ file, onChange }: { file: File | null; onChange: (file: File | null) => void }) {
  const [isOver, setOver] = useState(false);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: dropping is a short cut of the button inside
    <div
      className="drop-zone"
      data-over={isOver || undefined}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        onChange(event.dataTransfer.files[0] ?? null);
      }}
    >
      <FileButton onChange={onChange} accept="audio/*,video/*">
        {(props) => (
          <Button variant="default" {...props}>
            {transcriptionText.chooseFile}
          </Button>
        )}
      </FileButton>
      <Text size="sm" mt={4} c={file ? undefined : 'dimmed'}>
        {file?.name ?? transcriptionText.drop}
      </Text>
    </div>
  );
}

type Run = ReturnType<typeof useMutation<Awaited<ReturnType<typeof transcribe>>, Error, File>>;

function FileOutput({ run: { data, error, isPending } }: { run: Run }) {
  if (isPending) return <LoadingState />;
  if (error) return <Problem error={error} need="" />;
  if (data === undefined) {
    return (
      <EmptyState icon={FileAudio} title={transcriptionText.emptyFileTitle}>
        {transcriptionText.emptyFile}
      </EmptyState>
    );
  }
  const { text, words, duration, language, model, snr_db: snrDb, warning_codes: warnings } = data.body;
  const facts: Fact[] = [
    [transcriptionText.duration, playgroundText.seconds(duration)],
    [transcriptionText.language1, language ?? '-'],
    [transcriptionText.model, model],
    ...(snrDb === null ? [] : [[transcriptionText.signal, transcriptionText.db(snrDb)] as const]),
    ...factsOf(data),
  ];
  return (
    <>
      <Warnings codes={warnings} />
      <Output label={transcriptionText.transcript}>
        <div>
          <Words text={text} words={words} />
        </div>
      </Output>
      <Facts facts={facts} />
    </>
  );
}

async function transcribe(file: File, options: TranscriptionOptions) {
  const form = new FormData();
  form.append('file', file);
  for (const [name, value] of Object.entries(fieldsOf(options))) form.append(name, value);
  const sent = api.POST('/stt', { body: form as never, bodySerializer: (body: unknown) => body as FormData });
  return await charged(sent);
}

/** Form fields of `POST /stt`. */
function fieldsOf({ language, terms, diarize }: TranscriptionOptions): Record<string, string> {
  return {
    ...(language !== null && { language }),
    ...(terms.length > 0 && { keywords: JSON.stringify(terms) }),
    ...(diarize && { diarize: 'true' }),
    return_timestamps: 'word',
    include_confidence: 'true',
  };
}
