import { texts } from "../../i18n/index";

export const t = texts({
  en: {
    note: "What every agent is told when a session starts, in your words.",
    identity: "Who you are",
    identityPurpose:
      "Who agents work for: your name, your work, the machines and languages you use. Two or three sentences are enough.",
    profile: "How you want things done",
    profilePurpose:
      "What holds in all projects: how answers should read, what to ask before doing, what never to touch. Agents can propose preferences, but only you write here.",
  },
  zh: {
    note: "每次会话开始时以你的话告诉所有代理的内容。",
    identity: "你是谁",
    identityPurpose: "代理为谁工作:你的名字、工作、使用的机器和语言。两三句话就够。",
    profile: "你希望怎样做事",
    profilePurpose:
      "在所有项目中都成立的要求:回答怎样写、做之前要问什么、绝不能碰什么。代理可以提议偏好,但只有你能在这里书写。",
  },
});
