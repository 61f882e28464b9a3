<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="zh_CN">
<context>
    <name>celloom::ui::Arranger</name>
    <message>
        <source>Arranging the graph…</source>
        <translation>正在排列图…</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>The order on show stays</source>
        <translation>保持当前显示的排列</translation>
    </message>
</context>
<context>
    <name>celloom::ui::AttentionChart</name>
    <message>
        <source>Attention of head %1</source>
        <translation>第 %1 个头的注意力</translation>
    </message>
    <message>
        <source>%1 queries by %2 keys</source>
        <translation>%1 个查询 × %2 个键</translation>
    </message>
    <message>
        <source>keys →</source>
        <translation>键 →</translation>
    </message>
    <message>
        <source>← queries</source>
        <translation>← 查询</translation>
    </message>
    <message>
        <source>query %1 sees no key</source>
        <translation>查询 %1 看不到任何键</translation>
    </message>
    <message>
        <source>query %1, key %2: %3</source>
        <translation>查询 %1，键 %2：%3</translation>
    </message>
</context>
<context>
    <name>celloom::ui::BatchPreview</name>
    <message>
        <source>Point at a token, or walk with the arrow keys.</source>
        <translation>指向词元，或用方向键移动。</translation>
    </message>
    <message>
        <source>learned</source>
        <translation>参与学习</translation>
    </message>
    <message>
        <source>read, not learned</source>
        <translation>只读入，不学习</translation>
    </message>
    <message>
        <source>framed: a mark</source>
        <translation>带框：标记</translation>
    </message>
    <message>
        <source>border between documents</source>
        <translation>文档边界</translation>
    </message>
    <message>
        <source>First batch of the run</source>
        <translation>运行的首批数据</translation>
    </message>
    <message>
        <source>Tokens in a conversation</source>
        <translation>每条对话的词元数</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>关闭</translation>
    </message>
    <message>
        <source>Tokens of the batch</source>
        <translation>该批的词元</translation>
    </message>
    <message numerus="yes">
        <source>and %n more file(s)</source>
        <translation>
            <numerusform>另有 %n 个文件</numerusform>
        </translation>
    </message>
    <message>
        <source>Chat template: %1 (%2)</source>
        <translation>对话模板：%1（%2）</translation>
    </message>
    <message>
        <source>Tokenizer of %1 pieces, trained on these files</source>
        <translation>分词器 %1 个词元，由这些文件训练</translation>
    </message>
    <message>
        <source>Tokenizer of %1 pieces</source>
        <translation>分词器 %1 个词元</translation>
    </message>
    <message>
        <source>%1 rows to learn from, %2 held out.</source>
        <translation>%1 行用于学习，留出 %2 行。</translation>
    </message>
    <message>
        <source>%1 to %2, mean %3, spread %4</source>
        <translation>%1 到 %2，均值 %3，标准差 %4</translation>
    </message>
    <message>
        <source>%1 sequences of at most %2 tokens, %3 held out.</source>
        <translation>%1 条序列，每条至多 %2 个词元，另留出 %3 条。</translation>
    </message>
    <message>
        <source>%1 conversations, the longest of %2 tokens; %3 of %4 tokens are learned.</source>
        <translation>%1 条对话，最长 %2 个词元；%4 个词元中 %3 个参与学习。</translation>
    </message>
    <message>
        <source>This batch: %1 rows of %2 tokens, %3 learned.</source>
        <translation>这一批：%1 行，每行 %2 个词元，%3 个参与学习。</translation>
    </message>
    <message>
        <source>%1 conversations are too long and were shortened.</source>
        <translation>%1 条对话过长，已截短。</translation>
    </message>
    <message>
        <source>%1 conversations were left out.</source>
        <translation>%1 条对话被舍弃。</translation>
    </message>
    <message>
        <source>%1 conversations have no token to learn.</source>
        <translation>%1 条对话没有可学习的词元。</translation>
    </message>
</context>
<context>
    <name>celloom::ui::BottomBar</name>
    <message>
        <source>As the system</source>
        <translation>跟随系统</translation>
    </message>
    <message>
        <source>Light</source>
        <translation>浅色</translation>
    </message>
    <message>
        <source>Dark</source>
        <translation>深色</translation>
    </message>
    <message>
        <source>Language</source>
        <translation>语言</translation>
    </message>
    <message>
        <source>Look</source>
        <translation>外观</translation>
    </message>
    <message>
        <source>Light or dark</source>
        <translation>浅色或深色</translation>
    </message>
    <message>
        <source>Engine connected</source>
        <translation>引擎已连接</translation>
    </message>
    <message>
        <source>Engine starting…</source>
        <translation>引擎启动中…</translation>
    </message>
    <message>
        <source>Connecting to the engine…</source>
        <translation>正在连接引擎…</translation>
    </message>
    <message>
        <source>Engine unavailable: %1</source>
        <translation>引擎不可用：%1</translation>
    </message>
    <message>
        <source>%1 · %2 parameters · %3 FLOPs per token forward</source>
        <translation>%1 · %2 个参数 · 每词元前向 %3 FLOPs</translation>
    </message>
    <message>
        <source>%1 · %2 parameters · %3 FLOPs per row forward</source>
        <translation>%1 · %2 个参数 · 每行前向 %3 FLOPs</translation>
    </message>
</context>
<context>
    <name>celloom::ui::BottomPanel</name>
    <message>
        <source>Fold the panel (%1)</source>
        <translation>折叠面板 (%1)</translation>
    </message>
    <message>
        <source>Unfold the panel (%1)</source>
        <translation>展开面板 (%1)</translation>
    </message>
    <message>
        <source>Fold the panel</source>
        <translation>折叠面板</translation>
    </message>
    <message>
        <source>Unfold the panel</source>
        <translation>展开面板</translation>
    </message>
</context>
<context>
    <name>celloom::ui::CodeTab</name>
    <message>
        <source>The model in MindSpore&apos;s words</source>
        <translation>以 MindSpore 写法显示模型</translation>
    </message>
    <message>
        <source>The model in PyTorch&apos;s words</source>
        <translation>以 PyTorch 写法显示模型</translation>
    </message>
    <message>
        <source>Edit as code</source>
        <translation>以代码编辑</translation>
    </message>
    <message>
        <source>Change the text, or paste nn.Cell or nn.Module classes, and read them back into the model</source>
        <translation>修改文本，或粘贴 nn.Cell、nn.Module 类，再读回模型</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>复制</translation>
    </message>
    <message>
        <source>Copy the whole text</source>
        <translation>复制全部文本</translation>
    </message>
    <message>
        <source>Save…</source>
        <translation>保存…</translation>
    </message>
    <message>
        <source>Save the text as a .py file</source>
        <translation>将文本保存为 .py 文件</translation>
    </message>
    <message>
        <source>Replace the model</source>
        <translation>替换模型</translation>
    </message>
    <message>
        <source>The classes become the whole model, as one step (Ctrl+Return)</source>
        <translation>这些类成为整个模型，一步完成 (Ctrl+Return)</translation>
    </message>
    <message>
        <source>Insert as a cell</source>
        <translation>插入为单元</translation>
    </message>
    <message>
        <source>The classes become composites, with a cell of the last one in the graph on show (Ctrl+Shift+Return)</source>
        <translation>这些类成为复合单元，最后一个类作为单元插入当前图 (Ctrl+Shift+Return)</translation>
    </message>
    <message>
        <source>Model as code</source>
        <translation>模型代码</translation>
    </message>
    <message>
        <source>There is no code of the model while it has this problem: %1</source>
        <translation>模型存在以下问题时无法写成代码：%1</translation>
    </message>
    <message>
        <source>Save the code</source>
        <translation>保存代码</translation>
    </message>
    <message>
        <source>Python (*.py)</source>
        <translation>Python (*.py)</translation>
    </message>
    <message>
        <source>Saved as %1</source>
        <translation>已保存为 %1</translation>
    </message>
    <message>
        <source>Change the text or paste classes, then choose what they become. Escape leaves the text, Cancel gives it up.</source>
        <translation>修改文本或粘贴类，再选择它们成为什么。Esc 离开文本框，“取消”放弃修改。</translation>
    </message>
    <message>
        <source>Reading the classes…</source>
        <translation>正在读取这些类…</translation>
    </message>
    <message>
        <source>Line %1, column %2: %3</source>
        <translation>第 %1 行第 %2 列：%3</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>停止</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Stop reading</source>
        <translation>停止读取</translation>
    </message>
    <message>
        <source>Give the text up; the model stays as it is</source>
        <translation>放弃文本，模型保持不变</translation>
    </message>
</context>
<context>
    <name>celloom::ui::ColumnView</name>
    <message>
        <source>Model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Close this column</source>
        <translation>关闭这一列</translation>
    </message>
    <message>
        <source>Copy the last answer</source>
        <translation>复制最后的回答</translation>
    </message>
    <message>
        <source>Ask once more, with the next seed</source>
        <translation>用下一个种子再问一次</translation>
    </message>
    <message>
        <source>Conversation</source>
        <translation>对话</translation>
    </message>
    <message>
        <source>Open folder…</source>
        <translation>打开文件夹…</translation>
    </message>
    <message>
        <source>Choose a model…</source>
        <translation>选择模型…</translation>
    </message>
    <message>
        <source>%1 + adapter</source>
        <translation>%1 + 适配器</translation>
    </message>
    <message>
        <source>No adapter</source>
        <translation>不用适配器</translation>
    </message>
    <message>
        <source>Open adapter folder…</source>
        <translation>打开适配器文件夹…</translation>
    </message>
    <message>
        <source>Adapter</source>
        <translation>适配器</translation>
    </message>
    <message>
        <source>An adapter on this model</source>
        <translation>在此模型上加载适配器</translation>
    </message>
    <message>
        <source>No model is chosen</source>
        <translation>尚未选择模型</translation>
    </message>
    <message>
        <source>Not in memory; the next question loads it</source>
        <translation>已不在内存中；下次提问时会重新载入</translation>
    </message>
    <message>
        <source>Loading…</source>
        <translation>正在载入…</translation>
    </message>
    <message>
        <source>Not loaded</source>
        <translation>未载入</translation>
    </message>
    <message>
        <source>%1 parameters</source>
        <translation>%1 个参数</translation>
    </message>
    <message>
        <source>context %1</source>
        <translation>上下文 %1</translation>
    </message>
    <message>
        <source>Waits for the model…</source>
        <translation>等待模型载入…</translation>
    </message>
    <message>
        <source>Reads the question…</source>
        <translation>正在读取问题…</translation>
    </message>
    <message numerus="yes">
        <source>%n token(s)</source>
        <translation>
            <numerusform>%n 个词元</numerusform>
        </translation>
    </message>
    <message>
        <source>%1 tokens/s</source>
        <translation>%1 词元/秒</translation>
    </message>
</context>
<context>
    <name>celloom::ui::ComingPage</name>
    <message>
        <source>The Data page is not built yet</source>
        <translation>数据页尚未建成</translation>
    </message>
    <message>
        <source>Open the Train page</source>
        <translation>打开训练页</translation>
    </message>
    <message>
        <source>It will bring data sets in and show their rows, their encoding, the tokens that a sample becomes and which of them are learned, how long samples are and how they are packed. Until then, name files and tokenizer in the Train page; its preview shows the first batch.</source>
        <translation>这里将导入数据集，并显示其各行、编码、样本切分成的词元及其中参与学习的部分、长度分布以及打包方式。在此之前，请在训练页中填写文件和分词器；训练页的预览会显示第一批数据。</translation>
    </message>
</context>
<context>
    <name>celloom::ui::ComparePanel</name>
    <message>
        <source>End the comparison</source>
        <translation>结束比较</translation>
    </message>
    <message>
        <source>End the comparison (Esc)</source>
        <translation>结束比较（Esc）</translation>
    </message>
    <message>
        <source>Differences</source>
        <translation>差异</translation>
    </message>
    <message>
        <source>Against %1</source>
        <translation>与 %1 比较</translation>
    </message>
    <message>
        <source>added</source>
        <translation>新增</translation>
    </message>
    <message>
        <source>removed</source>
        <translation>删除</translation>
    </message>
    <message>
        <source>changed</source>
        <translation>改变</translation>
    </message>
    <message>
        <source>The two graphs say the same. Where cells stand does not count.</source>
        <translation>两个图内容相同（不计单元的位置）。</translation>
    </message>
    <message numerus="yes">
        <source>%n difference(s)</source>
        <translation>
            <numerusform>%n 处差异</numerusform>
        </translation>
    </message>
    <message>
        <source>Model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>the composite</source>
        <translation>复合单元</translation>
    </message>
    <message>
        <source>the graph&apos;s own note</source>
        <translation>图自身的备注</translation>
    </message>
    <message>
        <source>wire %1</source>
        <translation>连线 %1</translation>
    </message>
    <message>
        <source>hyper-parameter %1</source>
        <translation>超参数 %1</translation>
    </message>
    <message>
        <source>input %1</source>
        <translation>输入 %1</translation>
    </message>
    <message>
        <source>output %1</source>
        <translation>输出 %1</translation>
    </message>
</context>
<context>
    <name>celloom::ui::CostTab</name>
    <message>
        <source>Costs of the model</source>
        <translation>模型的开销</translation>
    </message>
    <message>
        <source>Fold repeats</source>
        <translation>折叠重复单元</translation>
    </message>
    <message>
        <source>One row for all instances of a repeated cell</source>
        <translation>重复单元的所有实例合为一行</translation>
    </message>
    <message>
        <source>Together %1 parameters, %2 FLOPs a token, activations %3, weights %4, for batch %5 × sequence %6</source>
        <translation>共 %1 参数，每词元 %2 FLOPs，激活 %3，权重 %4，按批大小 %5 × 序列长度 %6 计</translation>
    </message>
    <message>
        <source>as it was before the problems</source>
        <translation>为问题出现之前的数值</translation>
    </message>
    <message>
        <source>Together %1 parameters, %2 FLOPs a row, activations %3, weights %4, for batch %5</source>
        <translation>共 %1 参数，每行 %2 FLOPs，激活 %3，权重 %4，按批大小 %5 计</translation>
    </message>
</context>
<context>
    <name>celloom::ui::CostTreeModel</name>
    <message>
        <source>Of one forward pass; a product and a sum are two</source>
        <translation>一次前向计算；一次乘加计为两次</translation>
    </message>
    <message>
        <source>Kept for the backward pass, in the type of the run&apos;s precision</source>
        <translation>为反向传播保留，按运行的精度类型计</translation>
    </message>
    <message>
        <source>In float32, as they are kept while training</source>
        <translation>以 float32 计，即训练中保存的形式</translation>
    </message>
    <message>
        <source>Cell</source>
        <translation>单元</translation>
    </message>
    <message>
        <source>Type</source>
        <translation>类型</translation>
    </message>
    <message>
        <source>Parameters</source>
        <translation>参数</translation>
    </message>
    <message>
        <source>FLOPs a token</source>
        <translation>每词元 FLOPs</translation>
    </message>
    <message>
        <source>Activations</source>
        <translation>激活</translation>
    </message>
    <message>
        <source>Weights</source>
        <translation>权重</translation>
    </message>
    <message>
        <source>FLOPs a row</source>
        <translation>每行 FLOPs</translation>
    </message>
</context>
<context>
    <name>celloom::ui::DocumentTabs</name>
    <message>
        <source>Open models</source>
        <translation>已打开的模型</translation>
    </message>
    <message>
        <source>New model</source>
        <translation>新建模型</translation>
    </message>
    <message>
        <source>New model (Ctrl+T)</source>
        <translation>新建模型（Ctrl+T）</translation>
    </message>
    <message>
        <source>Opening…</source>
        <translation>正在打开…</translation>
    </message>
    <message>
        <source>Not saved to a file yet</source>
        <translation>尚未保存到文件</translation>
    </message>
    <message>
        <source>The preset or template %1</source>
        <translation>预设或模板 %1</translation>
    </message>
    <message>
        <source>Has unsaved changes</source>
        <translation>有未保存的改动</translation>
    </message>
    <message>
        <source>Close %1</source>
        <translation>关闭 %1</translation>
    </message>
    <message>
        <source>Close (Ctrl+W)</source>
        <translation>关闭（Ctrl+W）</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>关闭</translation>
    </message>
    <message>
        <source>Copy the path</source>
        <translation>复制路径</translation>
    </message>
</context>
<context>
    <name>celloom::ui::EngineClient</name>
    <message>
        <source>The engine was started but does not answer. Its messages are in %1.</source>
        <translation>引擎已启动但没有应答。其消息见 %1。</translation>
    </message>
    <message>
        <source>Waiting for an engine.</source>
        <translation>正在等待引擎。</translation>
    </message>
    <message>
        <source>celloom-engine was not found at %1. Build or install it beside the window&apos;s program.</source>
        <translation>在 %1 没有找到 celloom-engine。请把它构建或安装在本程序旁边。</translation>
    </message>
    <message>
        <source>The engine could not be started: %1</source>
        <translation>引擎无法启动：%1</translation>
    </message>
    <message>
        <source>The engine is being started.</source>
        <translation>引擎正在启动。</translation>
    </message>
    <message>
        <source>Connected to the engine (process %1).</source>
        <translation>已连接引擎（进程 %1）。</translation>
    </message>
    <message>
        <source>The engine went away before it answered.</source>
        <translation>引擎在应答之前断开了。</translation>
    </message>
    <message>
        <source>It is being reconnected; try again in a moment.</source>
        <translation>正在重新连接，请稍后再试。</translation>
    </message>
    <message>
        <source>The engine went away; runs go on. Reconnecting.</source>
        <translation>引擎断开，运行仍在继续。正在重新连接。</translation>
    </message>
    <message>
        <source>The engine is not connected.</source>
        <translation>引擎未连接。</translation>
    </message>
    <message>
        <source>Looking for the engine.</source>
        <translation>正在寻找引擎。</translation>
    </message>
</context>
<context>
    <name>celloom::ui::EngineJob</name>
    <message>
        <source>celloom-engine was not found at %1.</source>
        <translation>在 %1 未找到 celloom-engine。</translation>
    </message>
    <message>
        <source>Build or install it beside the window&apos;s program.</source>
        <translation>请将其构建或安装在窗口程序旁。</translation>
    </message>
    <message>
        <source>The engine could not be started: %1</source>
        <translation>无法启动引擎：%1</translation>
    </message>
    <message>
        <source>The engine was killed by signal %1.</source>
        <translation>引擎被信号 %1 终止。</translation>
    </message>
    <message>
        <source>The engine ended with code %1.</source>
        <translation>引擎以代码 %1 结束。</translation>
    </message>
    <message>
        <source>The engine&apos;s answer is too long to show.</source>
        <translation>引擎的回答过长，无法显示。</translation>
    </message>
</context>
<context>
    <name>celloom::ui::EventsModel</name>
    <message>
        <source>%1, step %2</source>
        <translation>%1，第 %2 步</translation>
    </message>
</context>
<context>
    <name>celloom::ui::ExportDialog</name>
    <message>
        <source>Merge and export</source>
        <translation>合并并导出</translation>
    </message>
    <message>
        <source>Export adapter</source>
        <translation>导出适配器</translation>
    </message>
    <message>
        <source>Export model</source>
        <translation>导出模型</translation>
    </message>
    <message>
        <source>The adapter of %1 is added to a copy of its base&apos;s weights, in float32, and rounded once. The base stays as it is. The largest difference between the logits before and after is shown.</source>
        <translation>将 %1 的适配器以 float32 加到基座权重的副本上，只舍入一次；基座不变。完成后显示合并前后 logit 的最大差。</translation>
    </message>
    <message>
        <source>The adapter of %1 is copied as PEFT reads it: adapter_config.json and adapter_model.safetensors.</source>
        <translation>按 PEFT 的格式复制 %1 的适配器：adapter_config.json 和 adapter_model.safetensors。</translation>
    </message>
    <message>
        <source>The newest checkpoint of %1 is written as a folder that other tools read.</source>
        <translation>将 %1 的最新检查点写成其他工具可读取的文件夹。</translation>
    </message>
    <message>
        <source>New folder</source>
        <translation>新文件夹</translation>
    </message>
    <message>
        <source>Choose…</source>
        <translation>选择…</translation>
    </message>
    <message>
        <source>as it is</source>
        <translation>保持原样</translation>
    </message>
    <message>
        <source>Type of the weights</source>
        <translation>权重类型</translation>
    </message>
    <message>
        <source>Hugging Face (safetensors)</source>
        <translation>Hugging Face（safetensors）</translation>
    </message>
    <message>
        <source>MindFormers (model.ckpt)</source>
        <translation>MindFormers（model.ckpt）</translation>
    </message>
    <message>
        <source>Layout</source>
        <translation>布局</translation>
    </message>
    <message>
        <source>Merge</source>
        <translation>合并</translation>
    </message>
    <message>
        <source>Export</source>
        <translation>导出</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Folder to make the export in</source>
        <translation>导出到哪个文件夹中</translation>
    </message>
    <message>
        <source>Give the whole path, from /.</source>
        <translation>请给出从 / 开始的完整路径。</translation>
    </message>
    <message>
        <source>This is there already; nothing is overwritten. Choose another name.</source>
        <translation>该名称已存在；不会覆盖任何内容，请换一个名称。</translation>
    </message>
    <message>
        <source>Save a picture</source>
        <translation>保存图片</translation>
    </message>
    <message>
        <source>PNG, %1×</source>
        <translation>PNG，%1×</translation>
    </message>
    <message>
        <source>SVG</source>
        <translation>SVG</translation>
    </message>
    <message>
        <source>Format</source>
        <translation>格式</translation>
    </message>
    <message>
        <source>Save…</source>
        <translation>保存…</translation>
    </message>
    <message>
        <source>The level on show, %1 × %2 pixels, on white.</source>
        <translation>当前显示的层级，%1 × %2 像素，白色背景。</translation>
    </message>
    <message>
        <source>Pictures (*%1)</source>
        <translation>图片 (*%1)</translation>
    </message>
</context>
<context>
    <name>celloom::ui::FieldRow</name>
    <message>
        <source>%1 to %2</source>
        <translation>%1 到 %2</translation>
    </message>
    <message>
        <source>at least %1</source>
        <translation>不小于 %1</translation>
    </message>
    <message>
        <source>at most %1</source>
        <translation>不大于 %1</translation>
    </message>
    <message>
        <source>any number</source>
        <translation>任意数</translation>
    </message>
    <message>
        <source>Range: %1. Default: %2.</source>
        <translation>范围：%1。默认值：%2。</translation>
    </message>
    <message>
        <source>Help on %1</source>
        <translation>“%1”的帮助</translation>
    </message>
    <message>
        <source>One file, folder or pattern a line</source>
        <translation>每行一个文件、文件夹或模式</translation>
    </message>
    <message>
        <source>One a line</source>
        <translation>每行一项</translation>
    </message>
    <message>
        <source>Add files…</source>
        <translation>添加文件…</translation>
    </message>
    <message>
        <source>Choose a file…</source>
        <translation>选择文件…</translation>
    </message>
    <message>
        <source>Add a folder…</source>
        <translation>添加文件夹…</translation>
    </message>
    <message>
        <source>Choose a folder…</source>
        <translation>选择文件夹…</translation>
    </message>
    <message>
        <source>Choose files for %1</source>
        <translation>为“%1”选择文件</translation>
    </message>
    <message>
        <source>Choose…</source>
        <translation>选择…</translation>
    </message>
</context>
<context>
    <name>celloom::ui::FolderCopy</name>
    <message>
        <source>The folder is there already.</source>
        <translation>该文件夹已存在。</translation>
    </message>
    <message>
        <source>Choose a name that is free: nothing is overwritten.</source>
        <translation>请换一个未使用的名称：不会覆盖任何内容。</translation>
    </message>
    <message>
        <source>The folder cannot be made</source>
        <translation>无法创建文件夹</translation>
    </message>
    <message>
        <source>The folder cannot be given its name</source>
        <translation>无法为文件夹命名</translation>
    </message>
    <message>
        <source>The file cannot be read</source>
        <translation>无法读取文件</translation>
    </message>
    <message>
        <source>The file cannot be written</source>
        <translation>无法写入文件</translation>
    </message>
</context>
<context>
    <name>celloom::ui::Format</name>
    <message>
        <source>%1 s</source>
        <translation>%1 秒</translation>
    </message>
    <message>
        <source>%1 min %2 s</source>
        <translation>%1 分 %2 秒</translation>
    </message>
    <message>
        <source>%1 h %2 min</source>
        <translation>%1 小时 %2 分</translation>
    </message>
    <message>
        <source>%1 days %2 h</source>
        <translation>%1 天 %2 小时</translation>
    </message>
    <message>
        <source>Queued</source>
        <translation>排队中</translation>
    </message>
    <message>
        <source>Preparing</source>
        <translation>准备中</translation>
    </message>
    <message>
        <source>Running</source>
        <translation>运行中</translation>
    </message>
    <message>
        <source>Paused</source>
        <translation>已暂停</translation>
    </message>
    <message>
        <source>Stopping</source>
        <translation>正在停止</translation>
    </message>
    <message>
        <source>Finished</source>
        <translation>已完成</translation>
    </message>
    <message>
        <source>Stopped</source>
        <translation>已停止</translation>
    </message>
    <message>
        <source>Failed</source>
        <translation>失败</translation>
    </message>
    <message>
        <source>Interrupted</source>
        <translation>已中断</translation>
    </message>
</context>
<context>
    <name>celloom::ui::GraphView</name>
    <message>
        <source>A wire ends at an input.</source>
        <translation>连线的终点是输入口。</translation>
    </message>
    <message>
        <source>A wire begins at an output.</source>
        <translation>连线的起点是输出口。</translation>
    </message>
    <message>
        <source>not a port of this cell</source>
        <translation>不是这个单元的端口</translation>
    </message>
    <message>
        <source>optional</source>
        <translation>可选</translation>
    </message>
    <message>
        <source>Wire from %1 to %2</source>
        <translation>从 %1 到 %2 的连线</translation>
    </message>
    <message>
        <source>The box has no input.</source>
        <translation>该方框没有输入。</translation>
    </message>
    <message>
        <source>The box has no output.</source>
        <translation>该方框没有输出。</translation>
    </message>
    <message>
        <source>Wire from %1 to %2, %3 of %4</source>
        <translation>从 %1 到 %2 的连线，第 %3 个，共 %4 个</translation>
    </message>
    <message>
        <source>It replaces the wire there.</source>
        <translation>它将替换那里的连线。</translation>
    </message>
    <message>
        <source>Arrows or Tab: another port. Enter: take it. Escape: no wire.</source>
        <translation>方向键或 Tab：另一个端口。回车：连接。Esc：不连。</translation>
    </message>
    <message>
        <source>input</source>
        <translation>输入</translation>
    </message>
    <message>
        <source>output</source>
        <translation>输出</translation>
    </message>
    <message>
        <source>fed by %1</source>
        <translation>来自 %1</translation>
    </message>
    <message>
        <source>feeds %1</source>
        <translation>送往 %1</translation>
    </message>
    <message>
        <source>Nothing here yet.

Ctrl+K inserts an input or a cell; the next one follows the one that is chosen.
Or drag from the list on the left, or paste nn.Cell or nn.Module classes.</source>
        <translation>这里还是空的。

Ctrl+K 插入输入或单元，下一个会接在所选单元之后。
也可以从左侧列表拖入，或粘贴 nn.Cell、nn.Module 类。</translation>
    </message>
    <message>
        <source>There is no port for a wire of %1.</source>
        <translation>没有可与 %1 连线的端口。</translation>
    </message>
    <message>
        <source>The kinds of numbers or the shapes do not fit.</source>
        <translation>数值类型或形状不匹配。</translation>
    </message>
    <message>
        <source>Does not fit: %1</source>
        <translation>不匹配：%1</translation>
    </message>
</context>
<context>
    <name>celloom::ui::HistogramChart</name>
    <message>
        <source>Histogram of %1</source>
        <translation>%1 的直方图</translation>
    </message>
    <message>
        <source>%1 values from %2 to %3</source>
        <translation>%1 个值，从 %2 到 %3</translation>
    </message>
</context>
<context>
    <name>celloom::ui::HistoryPage</name>
    <message>
        <source>Search names, models, tags, notes…</source>
        <translation>搜索名称、模型、标签、备注…</translation>
    </message>
    <message>
        <source>Search runs</source>
        <translation>搜索运行</translation>
    </message>
    <message>
        <source>Show runs in this state</source>
        <translation>只显示此状态的运行</translation>
    </message>
    <message>
        <source>No runs yet</source>
        <translation>还没有运行</translation>
    </message>
    <message>
        <source>Each run, its curves, samples and checkpoints appear here and stay.</source>
        <translation>每次运行连同曲线、样例和检查点都会出现在这里并保留下来。</translation>
    </message>
    <message>
        <source>All states</source>
        <translation>全部状态</translation>
    </message>
    <message>
        <source>Going on</source>
        <translation>进行中</translation>
    </message>
    <message>
        <source>Finished</source>
        <translation>已完成</translation>
    </message>
    <message>
        <source>Stopped or interrupted</source>
        <translation>已停止或中断</translation>
    </message>
    <message>
        <source>Failed</source>
        <translation>失败</translation>
    </message>
    <message>
        <source>Tags</source>
        <translation>标签</translation>
    </message>
    <message>
        <source>Notes</source>
        <translation>备注</translation>
    </message>
    <message>
        <source>Open in Live</source>
        <translation>在实时页打开</translation>
    </message>
    <message>
        <source>Copy its recipe to Train</source>
        <translation>把配方复制到训练页</translation>
    </message>
    <message>
        <source>Delete…</source>
        <translation>删除…</translation>
    </message>
    <message>
        <source>Runs: %1</source>
        <translation>运行：%1</translation>
    </message>
    <message>
        <source>Runs: %1 of %2</source>
        <translation>运行：%1 / %2</translation>
    </message>
    <message>
        <source>Created %1</source>
        <translation>创建于 %1</translation>
    </message>
    <message>
        <source>Ended %1</source>
        <translation>结束于 %1</translation>
    </message>
    <message>
        <source>Trained for %1</source>
        <translation>已训练 %1</translation>
    </message>
    <message>
        <source>From %1</source>
        <translation>来自 %1</translation>
    </message>
    <message>
        <source>Delete run</source>
        <translation>删除运行</translation>
    </message>
    <message>
        <source>Delete run %1 (%2) with its curves, samples and checkpoints?</source>
        <translation>删除运行 %1（%2）及其曲线、样例和检查点？</translation>
    </message>
    <message>
        <source>This cannot be undone.</source>
        <translation>此操作无法撤销。</translation>
    </message>
    <message>
        <source>Delete</source>
        <translation>删除</translation>
    </message>
    <message>
        <source>Keep</source>
        <translation>保留</translation>
    </message>
    <message>
        <source>Try</source>
        <translation>试用</translation>
    </message>
    <message>
        <source>Write text with its newest checkpoint</source>
        <translation>用它最新的检查点生成文字</translation>
    </message>
    <message>
        <source>Go on from the last checkpoint, with the same settings or others</source>
        <translation>从最近的检查点继续，设置可以不变，也可以修改</translation>
    </message>
    <message>
        <source>Train on…</source>
        <translation>追加训练…</translation>
    </message>
    <message>
        <source>Resume…</source>
        <translation>继续训练…</translation>
    </message>
    <message>
        <source>Took %1</source>
        <translation>用时 %1</translation>
    </message>
    <message>
        <source>Resume</source>
        <translation>续跑</translation>
    </message>
</context>
<context>
    <name>celloom::ui::Insight</name>
    <message>
        <source>Model as code</source>
        <translation>模型代码</translation>
    </message>
    <message>
        <source>Rules</source>
        <translation>规则</translation>
    </message>
    <message>
        <source>Precision</source>
        <translation>精度</translation>
    </message>
    <message>
        <source>Problems</source>
        <translation>问题</translation>
    </message>
    <message>
        <source>Problems %1</source>
        <translation>问题 %1</translation>
    </message>
    <message>
        <source>Wire %1 to %2</source>
        <translation>将 %1 连接到 %2</translation>
    </message>
    <message>
        <source>Remove the wire from %1 to %2</source>
        <translation>移除从 %1 到 %2 的连线</translation>
    </message>
    <message>
        <source>Move the wire from %1 to %2</source>
        <translation>将连线从 %1 移到 %2</translation>
    </message>
    <message>
        <source>Join both with an Add</source>
        <translation>用 Add 合并两者</translation>
    </message>
    <message>
        <source>Set %1 to %2</source>
        <translation>将 %1 设为 %2</translation>
    </message>
    <message>
        <source>Remove %1</source>
        <translation>移除 %1</translation>
    </message>
    <message>
        <source>Write %2 for %1</source>
        <translation>将 %1 改写为 %2</translation>
    </message>
    <message>
        <source>Make %1 of type %2</source>
        <translation>将 %1 的类型改为 %2</translation>
    </message>
    <message>
        <source>Take %1 from the library</source>
        <translation>从库中取用 %1</translation>
    </message>
    <message>
        <source>Rename %1 to %2</source>
        <translation>将 %1 重命名为 %2</translation>
    </message>
    <message>
        <source>Do not repeat %1</source>
        <translation>不重复 %1</translation>
    </message>
    <message>
        <source>Declare %1 as %2</source>
        <translation>将 %1 声明为 %2</translation>
    </message>
    <message>
        <source>Remove the port %1</source>
        <translation>移除端口 %1</translation>
    </message>
    <message>
        <source>Put %1 between %2 and %3</source>
        <translation>在 %2 与 %3 之间放入 %1</translation>
    </message>
    <message>
        <source>The model as MindSpore or PyTorch, and classes back into it</source>
        <translation>以 MindSpore 或 PyTorch 显示模型，也可由类读回模型</translation>
    </message>
    <message>
        <source>Cost</source>
        <translation>开销</translation>
    </message>
    <message>
        <source>Where parameters, FLOPs and memory sit</source>
        <translation>参数、计算量与内存的分布</translation>
    </message>
    <message>
        <source>What is wrong with the model; F8 goes from one to the next, Ctrl+. mends</source>
        <translation>模型存在的问题；按 F8 逐个查看，按 Ctrl+. 修复</translation>
    </message>
    <message>
        <source>Batch %1 × sequence %2 needs about %3 of memory; this machine has %4 free.</source>
        <translation>批大小 %1 × 序列长度 %2 约需 %3 内存；本机空闲 %4。</translation>
    </message>
    <message>
        <source>Smaller batches, accumulated, give the same steps.</source>
        <translation>减小批大小并累积梯度，每步结果相同。</translation>
    </message>
    <message>
        <source>Train</source>
        <translation>训练</translation>
    </message>
    <message>
        <source>Accumulate %1 × batch %2</source>
        <translation>累积 %1 × 批大小 %2</translation>
    </message>
    <message>
        <source>Rule %1</source>
        <translation>规则 %1</translation>
    </message>
    <message>
        <source>The recipe&apos;s rules are for %1; a run with the model in front would refuse this one.</source>
        <translation>配方的规则是为 %1 写的；用当前的模型运行会拒绝这一条。</translation>
    </message>
    <message>
        <source>Remove the rule</source>
        <translation>删除该规则</translation>
    </message>
    <message>
        <source>Edit the rule</source>
        <translation>编辑该规则</translation>
    </message>
    <message>
        <source>Make it a fine-tuning</source>
        <translation>改为微调</translation>
    </message>
    <message>
        <source>Remove the LoRA rules</source>
        <translation>删除 LoRA 规则</translation>
    </message>
</context>
<context>
    <name>celloom::ui::Inspector</name>
    <message>
        <source>LoRA</source>
        <translation>LoRA</translation>
    </message>
    <message>
        <source>frozen</source>
        <translation>冻结</translation>
    </message>
    <message>
        <source>recompute</source>
        <translation>重计算</translation>
    </message>
    <message>
        <source>model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>composite</source>
        <translation>组合单元</translation>
    </message>
    <message>
        <source>A composite: double-click or Enter steps in.</source>
        <translation>组合单元：双击或按回车进入。</translation>
    </message>
    <message>
        <source>input</source>
        <translation>输入</translation>
    </message>
    <message>
        <source>output</source>
        <translation>输出</translation>
    </message>
    <message>
        <source>Hyper-parameters</source>
        <translation>超参数</translation>
    </message>
    <message>
        <source>Parameters</source>
        <translation>参数</translation>
    </message>
    <message>
        <source>What it costs</source>
        <translation>开销</translation>
    </message>
    <message>
        <source>FLOPs per token, forward</source>
        <translation>每词元前向 FLOPs</translation>
    </message>
    <message>
        <source>Activations in float32</source>
        <translation>激活（float32）</translation>
    </message>
    <message>
        <source>Kept for the backward pass at batch %1, sequence %2</source>
        <translation>批大小 %1、序列长度 %2 时为反向传播保留</translation>
    </message>
    <message>
        <source>Trained in full, in the run&apos;s precision.</source>
        <translation>全部参与训练，精度随运行设置。</translation>
    </message>
    <message>
        <source>Weights in float32</source>
        <translation>float32 权重</translation>
    </message>
    <message>
        <source>in bfloat16 or float16</source>
        <translation>bfloat16 或 float16 权重</translation>
    </message>
    <message>
        <source>config.json: %1 is not read.</source>
        <translation>config.json：未读取 %1。</translation>
    </message>
    <message>
        <source>%1: Python code, which is never run.</source>
        <translation>%1：Python 代码，从不执行。</translation>
    </message>
    <message>
        <source>%1 is named by the index, but not there.</source>
        <translation>索引提到 %1，但文件不存在。</translation>
    </message>
    <message>
        <source>%1: a tokenizer of a kind that is not read; only tokenizer.model is.</source>
        <translation>%1：不支持的分词器格式；只读取 tokenizer.model。</translation>
    </message>
    <message>
        <source>%1: weights in a format that is not read.</source>
        <translation>%1：不支持的权重格式。</translation>
    </message>
    <message>
        <source>Folder</source>
        <translation>文件夹</translation>
    </message>
    <message>
        <source>Parameters as it is there</source>
        <translation>文件夹中模型的参数</translation>
    </message>
    <message>
        <source>The recipe changes it, for example to the tokenizer&apos;s vocabulary: %1</source>
        <translation>配方改变了它，例如改为分词器的词表：%1</translation>
    </message>
    <message>
        <source>Weights together</source>
        <translation>权重合计</translation>
    </message>
    <message>
        <source>No weights: a model trained from this folder begins empty.</source>
        <translation>没有权重：从该文件夹训练的模型从头开始。</translation>
    </message>
    <message>
        <source>Type, says config.json</source>
        <translation>类型（据 config.json）</translation>
    </message>
    <message>
        <source>Tokenizer</source>
        <translation>分词器</translation>
    </message>
    <message>
        <source>none that can be read</source>
        <translation>没有可读取的</translation>
    </message>
    <message>
        <source>Not understood</source>
        <translation>未能理解的内容</translation>
    </message>
    <message>
        <source>Nothing: everything in the folder that matters was read.</source>
        <translation>没有：文件夹中有关的内容都已读取。</translation>
    </message>
    <message>
        <source>The folder has more files than were looked at.</source>
        <translation>文件夹中的文件过多，未全部查看。</translation>
    </message>
    <message>
        <source>The recipe&apos;s run begins with these weights.</source>
        <translation>配方的运行从这些权重开始。</translation>
    </message>
    <message>
        <source>Begin the run with these weights</source>
        <translation>从这些权重开始运行</translation>
    </message>
    <message>
        <source>Sets the recipe&apos;s initial weights, and its tokenizer where the folder has one</source>
        <translation>设置配方的初始权重；文件夹有分词器时一并设置</translation>
    </message>
    <message numerus="yes">
        <source>and %n more</source>
        <translation>
            <numerusform>另有 %n 项</numerusform>
        </translation>
    </message>
    <message>
        <source>LoRA r=%1</source>
        <translation>LoRA r=%1</translation>
    </message>
    <message>
        <source>learns whole</source>
        <translation>整体训练</translation>
    </message>
    <message>
        <source>bias learns</source>
        <translation>偏置训练</translation>
    </message>
    <message>
        <source>Trainable</source>
        <translation>可训练</translation>
    </message>
    <message>
        <source>%1, adapters included</source>
        <translation>%1（含适配器）</translation>
    </message>
    <message>
        <source>Fine-tune this</source>
        <translation>以此微调</translation>
    </message>
    <message>
        <source>Makes the recipe one that tunes this model, with its weights and its tokenizer, and shows it in Train</source>
        <translation>将配方改为微调该模型（使用其权重和分词器），并在训练页显示</translation>
    </message>
    <message>
        <source>Treatment</source>
        <translation>处理方式</translation>
    </message>
    <message>
        <source>optional, not wired</source>
        <translation>可选，未连接</translation>
    </message>
    <message>
        <source>not known</source>
        <translation>未知</translation>
    </message>
    <message>
        <source>Inputs</source>
        <translation>输入</translation>
    </message>
    <message>
        <source>Outputs</source>
        <translation>输出</translation>
    </message>
    <message>
        <source>The run&apos;s vocabulary follows the tokenizer that it trains.</source>
        <translation>运行的词表大小随它训练的分词器而定。</translation>
    </message>
    <message>
        <source>File</source>
        <translation>文件</translation>
    </message>
    <message>
        <source>A Cell graph by itself, without weights or tokenizer: a model trained from it begins empty.</source>
        <translation>单独的单元图，没有权重，也没有分词器：用它训练的模型从随机初始化开始。</translation>
    </message>
    <message>
        <source>FLOPs per row, forward</source>
        <translation>每行前向 FLOPs</translation>
    </message>
    <message>
        <source>Kept for the backward pass at batch %1</source>
        <translation>批大小 %1 时为反向传播保留</translation>
    </message>
    <message>
        <source>No weights</source>
        <translation>没有权重</translation>
    </message>
</context>
<context>
    <name>celloom::ui::KindSwitch</name>
    <message>
        <source>Pretrain</source>
        <translation>预训练</translation>
    </message>
    <message>
        <source>Fine-tune</source>
        <translation>微调</translation>
    </message>
    <message>
        <source>Every weight learns</source>
        <translation>所有权重都学习</translation>
    </message>
    <message>
        <source>A base goes on learning</source>
        <translation>基座继续学习</translation>
    </message>
    <message>
        <source>Evaluate</source>
        <translation>评估</translation>
    </message>
    <message>
        <source>A model is measured</source>
        <translation>测量一个模型</translation>
    </message>
    <message>
        <source>Predict</source>
        <translation>预测</translation>
    </message>
    <message>
        <source>Prompts are answered</source>
        <translation>回答文件中的提示</translation>
    </message>
</context>
<context>
    <name>celloom::ui::LengthHistogram</name>
    <message>
        <source>up to %1 tokens: %2</source>
        <translation>至多 %1 个词元：%2</translation>
    </message>
</context>
<context>
    <name>celloom::ui::LivePage</name>
    <message>
        <source>Not smoothed</source>
        <translation>不平滑</translation>
    </message>
    <message>
        <source>Smoothed</source>
        <translation>平滑</translation>
    </message>
    <message>
        <source>Smoothed strongly</source>
        <translation>强平滑</translation>
    </message>
    <message>
        <source>By step</source>
        <translation>按步</translation>
    </message>
    <message>
        <source>By epoch</source>
        <translation>按轮</translation>
    </message>
    <message>
        <source>By time</source>
        <translation>按时间</translation>
    </message>
    <message>
        <source>No run is open</source>
        <translation>没有打开的运行</translation>
    </message>
    <message>
        <source>Start one with Run, or open one in the History: its curves, samples and events are shown here as they come.</source>
        <translation>按“运行”开始一次，或在历史页打开一次：曲线、样例和事件会随时显示在这里。</translation>
    </message>
    <message>
        <source>To the start page</source>
        <translation>回到起始页</translation>
    </message>
    <message>
        <source>%1 tokens/s</source>
        <translation>%1 词元/秒</translation>
    </message>
    <message>
        <source>Loss</source>
        <translation>损失</translation>
    </message>
    <message>
        <source>train</source>
        <translation>训练</translation>
    </message>
    <message>
        <source>validation</source>
        <translation>验证</translation>
    </message>
    <message>
        <source>Learning rate</source>
        <translation>学习率</translation>
    </message>
    <message>
        <source>Throughput</source>
        <translation>吞吐量</translation>
    </message>
    <message>
        <source>Gradient norm</source>
        <translation>梯度范数</translation>
    </message>
    <message>
        <source>Memory, GiB</source>
        <translation>内存（GiB）</translation>
    </message>
    <message>
        <source>Ctrl+wheel zooms, dragging moves, a double click shows all</source>
        <translation>Ctrl+滚轮缩放，拖动平移，双击显示全部</translation>
    </message>
    <message>
        <source>Log</source>
        <translation>对数</translation>
    </message>
    <message>
        <source>Logarithmic axis</source>
        <translation>对数坐标轴</translation>
    </message>
    <message>
        <source>What runs along the bottom of the charts</source>
        <translation>图表横轴的含义</translation>
    </message>
    <message>
        <source>Axis of the charts</source>
        <translation>图表横轴</translation>
    </message>
    <message>
        <source>Smoothing of the loss</source>
        <translation>损失的平滑</translation>
    </message>
    <message>
        <source>Samples while training</source>
        <translation>训练中的样例</translation>
    </message>
    <message>
        <source>Text that the model writes appears here, every so many steps as the recipe says.</source>
        <translation>模型写出的文字会按配方设定的步数间隔出现在这里。</translation>
    </message>
    <message>
        <source>Events</source>
        <translation>事件</translation>
    </message>
    <message>
        <source>Compared with</source>
        <translation>与其他运行比较</translation>
    </message>
    <message>
        <source>%1 · run %2</source>
        <translation>%1 · 运行 %2</translation>
    </message>
    <message>
        <source>step %1</source>
        <translation>第 %1 步</translation>
    </message>
    <message>
        <source>step</source>
        <translation>步</translation>
    </message>
    <message>
        <source>epoch</source>
        <translation>轮</translation>
    </message>
    <message>
        <source>seconds</source>
        <translation>秒</translation>
    </message>
    <message>
        <source>%1 (perplexity %2)</source>
        <translation>%1（困惑度 %2）</translation>
    </message>
    <message>
        <source>bigram</source>
        <translation>二元组</translation>
    </message>
    <message>
        <source>Change…</source>
        <translation>更改…</translation>
    </message>
    <message>
        <source>Change the learning rate of this run</source>
        <translation>更改这次运行的学习率</translation>
    </message>
    <message>
        <source>Change the learning rate</source>
        <translation>更改学习率</translation>
    </message>
    <message>
        <source>Learning rate from the next step to the end of the run, in place of the recipe&apos;s schedule:</source>
        <translation>从下一步到运行结束使用的学习率，取代配方中的学习率调度：</translation>
    </message>
    <message>
        <source>Change</source>
        <translation>更改</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Evaluate now</source>
        <translation>立即评估</translation>
    </message>
    <message>
        <source>Write now</source>
        <translation>立即写作</translation>
    </message>
    <message>
        <source>The texts are in %1.</source>
        <translation>文字写在 %1。</translation>
    </message>
    <message>
        <source>Measure the validation data after the current step</source>
        <translation>当前步结束后在验证数据上测量</translation>
    </message>
    <message>
        <source>This run has no validation data: its recipe names none and holds none out</source>
        <translation>该运行没有验证数据：配方既未指定，也未留出</translation>
    </message>
    <message>
        <source>Let the model write after the current step</source>
        <translation>当前步结束后让模型写一段</translation>
    </message>
    <message>
        <source>This run has no tokenizer: it learns from token files, and its recipe names none</source>
        <translation>该运行没有分词器：它从词元文件学习，配方也未指定分词器</translation>
    </message>
    <message>
        <source>Answers</source>
        <translation>回答</translation>
    </message>
    <message>
        <source>What the model wrote</source>
        <translation>模型写的文字</translation>
    </message>
    <message>
        <source>Answers to questions appear here, where the recipe has some checked.</source>
        <translation>配方要求检查回答时，问题的回答显示在这里。</translation>
    </message>
    <message>
        <source>The first texts appear here; all of them are in the file of results.</source>
        <translation>最先写出的文字显示在这里；全部结果在结果文件中。</translation>
    </message>
    <message>
        <source>step %1, before it was run again</source>
        <translation>第 %1 步，重新运行之前</translation>
    </message>
</context>
<context>
    <name>celloom::ui::LoraPanel</name>
    <message>
        <source>Cells that can get an adapter</source>
        <translation>可加适配器的单元</translation>
    </message>
    <message>
        <source>Query and value</source>
        <translation>查询与值</translation>
    </message>
    <message>
        <source>The projections of queries and values; where they are packed into one matrix, that one</source>
        <translation>查询与值的投影；若合并为一个矩阵，则为该矩阵</translation>
    </message>
    <message>
        <source>Attention</source>
        <translation>注意力</translation>
    </message>
    <message>
        <source>Every Dense cell of the attention</source>
        <translation>注意力中的所有 Dense 单元</translation>
    </message>
    <message>
        <source>All linear</source>
        <translation>所有线性层</translation>
    </message>
    <message>
        <source>Every Dense cell of the model</source>
        <translation>模型的所有 Dense 单元</translation>
    </message>
    <message>
        <source>Regular expression…</source>
        <translation>正则表达式…</translation>
    </message>
    <message>
        <source>Choose by a regular expression over the names in checkpoints</source>
        <translation>用正则表达式按检查点中的名称选择</translation>
    </message>
    <message>
        <source>No cell is chosen.</source>
        <translation>未选择任何单元。</translation>
    </message>
    <message numerus="yes">
        <source>%n cell(s), %1 trainable parameters, %2 %; %3</source>
        <translation>
            <numerusform>%n 个单元，%1 个可训练参数，%2 %；%3</numerusform>
        </translation>
    </message>
    <message>
        <source>With gradients and the optimizer&apos;s moments %1. The base stays as it is.</source>
        <translation>连同梯度和优化器矩估计共 %1。基座不变。</translation>
    </message>
    <message>
        <source>Chosen by the regular expression; ticking replaces it by a list.</source>
        <translation>由正则表达式选出；勾选会将其改为列表。</translation>
    </message>
</context>
<context>
    <name>celloom::ui::MainWindow</name>
    <message>
        <source>copy of %1</source>
        <translation>%1 的副本</translation>
    </message>
    <message>
        <source>Open recipe</source>
        <translation>打开配方</translation>
    </message>
    <message>
        <source>Recipes (*.json)</source>
        <translation>配方 (*.json)</translation>
    </message>
    <message>
        <source>All files (*)</source>
        <translation>所有文件 (*)</translation>
    </message>
    <message>
        <source>Problems: %1. The first: </source>
        <translation>共 %1 个问题。第一个：</translation>
    </message>
    <message>
        <source>Show the field</source>
        <translation>显示该字段</translation>
    </message>
    <message>
        <source>Show the rules</source>
        <translation>显示规则</translation>
    </message>
    <message>
        <source>Show the model</source>
        <translation>显示模型</translation>
    </message>
    <message>
        <source>The recipe can run. Warnings beside the fields: %1.</source>
        <translation>配方可以运行。字段旁有 %1 条警告。</translation>
    </message>
    <message>
        <source>The recipe and the model are in order.</source>
        <translation>配方和模型都没有问题。</translation>
    </message>
    <message>
        <source>Open the folder</source>
        <translation>打开文件夹</translation>
    </message>
    <message>
        <source>The run %1 has no complete checkpoint.</source>
        <translation>运行 %1 没有完整的检查点。</translation>
    </message>
    <message>
        <source>Celloom ended before changes of the recipe %1 were saved; they are back.</source>
        <translation>Celloom 上次结束时配方 %1 有改动尚未保存；这些改动已经恢复。</translation>
    </message>
    <message>
        <source>Show the recipe</source>
        <translation>查看配方</translation>
    </message>
    <message>
        <source>untitled</source>
        <translation>未命名</translation>
    </message>
</context>
<context>
    <name>celloom::ui::Minimap</name>
    <message>
        <source>Minimap</source>
        <translation>缩略图</translation>
    </message>
    <message>
        <source>Click to look elsewhere, or drag the frame (M hides it)</source>
        <translation>点击以查看别处，或拖动方框（M 隐藏）</translation>
    </message>
</context>
<context>
    <name>celloom::ui::ModelDocument</name>
    <message>
        <source>Recover unsaved edits</source>
        <translation>恢复未保存的修改</translation>
    </message>
    <message>
        <source>Read the file again</source>
        <translation>重新读取文件</translation>
    </message>
</context>
<context>
    <name>celloom::ui::ModelPage</name>
    <message>
        <source>instance</source>
        <translation>实例</translation>
    </message>
    <message>
        <source>Instance of the repeated cell</source>
        <translation>重复单元的实例</translation>
    </message>
    <message>
        <source>Smaller (−)</source>
        <translation>缩小 (−)</translation>
    </message>
    <message>
        <source>Smaller</source>
        <translation>缩小</translation>
    </message>
    <message>
        <source>Larger (+)</source>
        <translation>放大 (+)</translation>
    </message>
    <message>
        <source>Larger</source>
        <translation>放大</translation>
    </message>
    <message>
        <source>Fit</source>
        <translation>适应</translation>
    </message>
    <message>
        <source>Graph of the model</source>
        <translation>模型的图</translation>
    </message>
    <message>
        <source>Opening the model…</source>
        <translation>正在打开模型…</translation>
    </message>
    <message>
        <source>The model could not be opened</source>
        <translation>无法打开模型</translation>
    </message>
    <message>
        <source>  (0 to %1)</source>
        <translation>  （0 到 %1）</translation>
    </message>
    <message>
        <source>Open</source>
        <translation>打开</translation>
    </message>
    <message>
        <source>Open a model</source>
        <translation>打开模型</translation>
    </message>
    <message>
        <source>Open a model&apos;s folder: Hugging Face layout, a checkpoint, a run. It can be dropped on the window, too.</source>
        <translation>打开模型文件夹：Hugging Face 布局、检查点或运行。也可以拖到窗口上。</translation>
    </message>
    <message>
        <source>Open a folder…</source>
        <translation>打开文件夹…</translation>
    </message>
    <message>
        <source>Open a file…</source>
        <translation>打开文件…</translation>
    </message>
    <message>
        <source>Forget these</source>
        <translation>清除记录</translation>
    </message>
    <message>
        <source>Open a model&apos;s folder</source>
        <translation>打开模型文件夹</translation>
    </message>
    <message>
        <source>Open a model&apos;s file</source>
        <translation>打开模型文件</translation>
    </message>
    <message>
        <source>Models (config.json *.cells.json)</source>
        <translation>模型 (config.json *.cells.json)</translation>
    </message>
    <message>
        <source>%1 cannot be opened; the model stays as it was.</source>
        <translation>无法打开 %1；当前模型保持不变。</translation>
    </message>
    <message>
        <source>All files (*)</source>
        <translation>所有文件 (*)</translation>
    </message>
    <message>
        <source>Arrange</source>
        <translation>自动布局</translation>
    </message>
    <message>
        <source>Bring them back</source>
        <translation>找回修改</translation>
    </message>
    <message>
        <source>Save the model</source>
        <translation>保存模型</translation>
    </message>
    <message>
        <source>Cell graphs (*.cells.json)</source>
        <translation>单元图 (*.cells.json)</translation>
    </message>
    <message>
        <source>Save the model as…</source>
        <translation>模型另存为…</translation>
    </message>
    <message>
        <source>Cut</source>
        <translation>剪切</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>复制</translation>
    </message>
    <message>
        <source>Paste</source>
        <translation>粘贴</translation>
    </message>
    <message>
        <source>Duplicate</source>
        <translation>再制</translation>
    </message>
    <message>
        <source>Delete</source>
        <translation>删除</translation>
    </message>
    <message>
        <source>Group into a composite</source>
        <translation>组合为复合单元</translation>
    </message>
    <message>
        <source>Expand the composite</source>
        <translation>展开复合单元</translation>
    </message>
    <message>
        <source>Rename</source>
        <translation>重命名</translation>
    </message>
    <message>
        <source>Select all</source>
        <translation>全选</translation>
    </message>
    <message>
        <source>Align in a row</source>
        <translation>对齐成一行</translation>
    </message>
    <message>
        <source>Align in a column</source>
        <translation>对齐成一列</translation>
    </message>
    <message>
        <source>Insert a cell…</source>
        <translation>插入单元…</translation>
    </message>
    <message>
        <source>Undo: %1</source>
        <translation>撤销：%1</translation>
    </message>
    <message>
        <source>Undo</source>
        <translation>撤销</translation>
    </message>
    <message>
        <source>Redo: %1</source>
        <translation>重做：%1</translation>
    </message>
    <message>
        <source>Redo</source>
        <translation>重做</translation>
    </message>
    <message>
        <source>Move</source>
        <translation>移动</translation>
    </message>
    <message>
        <source>Wire</source>
        <translation>连线</translation>
    </message>
    <message>
        <source>Remove a wire</source>
        <translation>删除连线</translation>
    </message>
    <message>
        <source>Insert %1 on a wire</source>
        <translation>在连线上插入 %1</translation>
    </message>
    <message>
        <source>Insert %1</source>
        <translation>插入 %1</translation>
    </message>
    <message numerus="yes">
        <source>Delete %n cell(s)</source>
        <translation>
            <numerusform>删除 %n 个单元</numerusform>
        </translation>
    </message>
    <message>
        <source>Delete the port %1</source>
        <translation>删除端口 %1</translation>
    </message>
    <message>
        <source>Group</source>
        <translation>组合</translation>
    </message>
    <message>
        <source>Expand %1</source>
        <translation>展开 %1</translation>
    </message>
    <message>
        <source>Align</source>
        <translation>对齐</translation>
    </message>
    <message>
        <source>Add a port</source>
        <translation>添加端口</translation>
    </message>
    <message>
        <source>Model from code</source>
        <translation>由代码得到模型</translation>
    </message>
    <message>
        <source>Insert %1 from code</source>
        <translation>由代码插入 %1</translation>
    </message>
    <message>
        <source>This model was never saved</source>
        <translation>此模型从未保存过</translation>
    </message>
    <message>
        <source>Bring its unsaved edits back, above, or begin a new one (Ctrl+T).</source>
        <translation>可用上方的按钮恢复其未保存的改动，或新建一个（Ctrl+T）。</translation>
    </message>
    <message>
        <source>Celloom ended before changes of these models were saved: %1.</source>
        <translation>Celloom 上次结束时，以下模型的改动尚未保存：%1。</translation>
    </message>
    <message>
        <source>%1 is open in another tab. Choose another name, or close that tab first.</source>
        <translation>%1 已在另一个标签页中打开。请换一个文件名，或先关闭那个标签页。</translation>
    </message>
    <message>
        <source>Bring back unsaved models (%1)</source>
        <translation>恢复未保存的模型（%1）</translation>
    </message>
    <message>
        <source>Close the model</source>
        <translation>关闭模型</translation>
    </message>
    <message>
        <source>New model…</source>
        <translation>新建模型…</translation>
    </message>
    <message>
        <source>Save to My cells…</source>
        <translation>存入“我的单元”…</translation>
    </message>
    <message>
        <source>Update %1 to version %2</source>
        <translation>将 %1 更新到版本 %2</translation>
    </message>
    <message>
        <source>%1 (version %2, here %3)</source>
        <translation>%1（版本 %2，此处为 %3）</translation>
    </message>
    <message>
        <source>The library has newer versions: %1.</source>
        <translation>单元库有更新的版本：%1。</translation>
    </message>
    <message>
        <source>Update</source>
        <translation>更新</translation>
    </message>
    <message>
        <source>Update %1</source>
        <translation>更新 %1</translation>
    </message>
    <message>
        <source>%1 was edited in this model. Its edits give way to version %2 of the library. Undo brings them back.</source>
        <translation>%1 在此模型中被编辑过。这些改动将被单元库的版本 %2 取代；撤销可恢复。</translation>
    </message>
    <message>
        <source>Replace it</source>
        <translation>取代</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Update from the library</source>
        <translation>从单元库更新</translation>
    </message>
    <message>
        <source>%1 stays as it is, since version %2 would break what uses it:</source>
        <translation>%1 保持不变，因为版本 %2 会破坏使用它的部分：</translation>
    </message>
    <message>
        <source>%1 is in My cells, version %2.</source>
        <translation>%1 已存入“我的单元”，版本 %2。</translation>
    </message>
    <message>
        <source>My cells has %1 as it is, version %2.</source>
        <translation>“我的单元”中的 %1 与此相同，版本 %2。</translation>
    </message>
    <message>
        <source>Save to My cells</source>
        <translation>存入“我的单元”</translation>
    </message>
    <message>
        <source>Remove from My cells</source>
        <translation>从“我的单元”移除</translation>
    </message>
    <message>
        <source>Remove %1 with all its versions? Models that have a copy keep it. This cannot be undone.</source>
        <translation>移除 %1 及其所有版本？已有副本的模型会保留副本。此操作无法撤销。</translation>
    </message>
    <message>
        <source>Remove</source>
        <translation>移除</translation>
    </message>
    <message>
        <source>Add the port %1</source>
        <translation>添加端口 %1</translation>
    </message>
    <message>
        <source>Compare</source>
        <translation>比较</translation>
    </message>
    <message>
        <source>Shows what differs from another model, a file, or what was saved last</source>
        <translation>显示与另一个模型、文件或上次保存内容的差异</translation>
    </message>
    <message>
        <source>With what was saved last</source>
        <translation>与上次保存的内容</translation>
    </message>
    <message>
        <source>what was saved</source>
        <translation>上次保存的内容</translation>
    </message>
    <message>
        <source>With %1</source>
        <translation>与 %1</translation>
    </message>
    <message>
        <source>With a file…</source>
        <translation>与文件…</translation>
    </message>
    <message>
        <source>Compare with</source>
        <translation>比较对象</translation>
    </message>
    <message>
        <source>%1 cannot be compared with.</source>
        <translation>无法与 %1 比较。</translation>
    </message>
    <message>
        <source>Minimap</source>
        <translation>缩略图</translation>
    </message>
    <message>
        <source>The picture is %1.</source>
        <translation>图片已保存为 %1。</translation>
    </message>
    <message>
        <source>Save a picture…</source>
        <translation>保存图片…</translation>
    </message>
    <message>
        <source>%1 (its file is gone)</source>
        <translation>%1（文件已不存在）</translation>
    </message>
    <message>
        <source>The file of %1 is gone: the model is only here.</source>
        <translation>%1 的文件已不存在：这个模型只在这里。</translation>
    </message>
    <message>
        <source>Save it again</source>
        <translation>重新保存</translation>
    </message>
    <message>
        <source>The file of %1 was changed outside while the model has unsaved edits here.</source>
        <translation>%1 的文件在外部被修改，而这里还有未保存的编辑。</translation>
    </message>
    <message>
        <source>Read the file again</source>
        <translation>重新读取文件</translation>
    </message>
    <message>
        <source>The file of %1 was changed outside and cannot be read; the model stays as it was.</source>
        <translation>%1 的文件在外部被修改，现在无法读取；模型保持原样。</translation>
    </message>
    <message>
        <source>The file of %1 was changed outside and was read again. Undo brings back what was here.</source>
        <translation>%1 的文件在外部被修改，已重新读取。撤销可恢复这里原来的内容。</translation>
    </message>
    <message>
        <source>Save %1</source>
        <translation>保存 %1</translation>
    </message>
    <message>
        <source>The file was changed outside since it was read. Saving replaces what is there now:</source>
        <translation>读取之后，该文件在外部被修改过。保存会替换现在的内容：</translation>
    </message>
    <message>
        <source>Save over it</source>
        <translation>覆盖保存</translation>
    </message>
    <message>
        <source>a rule of the recipe</source>
        <translation>配方的一条规则</translation>
    </message>
    <message>
        <source>These models were open last and are not there any more: %1.</source>
        <translation>上次打开的这些模型已不存在：%1。</translation>
    </message>
    <message>
        <source>Compare with another model</source>
        <translation>与另一个模型比较</translation>
    </message>
    <message>
        <source>Fit the graph into the canvas</source>
        <translation>让图适合画布</translation>
    </message>
    <message>
        <source>Fit the graph into the canvas, as large as its texts need (0). Shift+0 shows all of it.</source>
        <translation>让图适合画布，文字保持可读 (0)。Shift+0 显示整个图。</translation>
    </message>
    <message>
        <source>Show the whole graph</source>
        <translation>显示整个图</translation>
    </message>
    <message>
        <source>%1 has no input that the wire could feed.</source>
        <translation>%1 没有可由这条连线供给的输入。</translation>
    </message>
    <message>
        <source>%1 has no output that could go on from there.</source>
        <translation>%1 没有可以继续连下去的输出。</translation>
    </message>
</context>
<context>
    <name>celloom::ui::NewModelDialog</name>
    <message>
        <source>Templates</source>
        <translation>模板</translation>
    </message>
    <message>
        <source>Language models</source>
        <translation>语言模型</translation>
    </message>
    <message>
        <source>Networks of the examples</source>
        <translation>示例中的网络</translation>
    </message>
    <message>
        <source>%1, as it is.</source>
        <translation>%1，原样。</translation>
    </message>
    <message>
        <source>%1 with %2.</source>
        <translation>%1，其中 %2。</translation>
    </message>
    <message>
        <source>Empty graph</source>
        <translation>空图</translation>
    </message>
    <message>
        <source>A canvas with nothing on it.</source>
        <translation>空白画布。</translation>
    </message>
    <message>
        <source>%1 parameters</source>
        <translation>%1 个参数</translation>
    </message>
    <message>
        <source>New model</source>
        <translation>新建模型</translation>
    </message>
    <message>
        <source>Search templates, presets and examples</source>
        <translation>搜索模板、预设和示例</translation>
    </message>
    <message>
        <source>What to begin from</source>
        <translation>从何开始</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Create</source>
        <translation>创建</translation>
    </message>
    <message>
        <source>Nothing is called so</source>
        <translation>没有这样的名称</translation>
    </message>
</context>
<context>
    <name>celloom::ui::Notice</name>
    <message>
        <source>Close this message</source>
        <translation>关闭此消息</translation>
    </message>
</context>
<context>
    <name>celloom::ui::PageBar</name>
    <message>
        <source>Model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Data</source>
        <translation>数据</translation>
    </message>
    <message>
        <source>Train</source>
        <translation>训练</translation>
    </message>
    <message>
        <source>Live</source>
        <translation>实时</translation>
    </message>
    <message>
        <source>History</source>
        <translation>历史</translation>
    </message>
    <message>
        <source>Try</source>
        <translation>试用</translation>
    </message>
</context>
<context>
    <name>celloom::ui::Palette</name>
    <message>
        <source>Dense and embedding</source>
        <translation>全连接与嵌入</translation>
    </message>
    <message>
        <source>Attention</source>
        <translation>注意力</translation>
    </message>
    <message>
        <source>Normalisation</source>
        <translation>归一化</translation>
    </message>
    <message>
        <source>Activation</source>
        <translation>激活</translation>
    </message>
    <message>
        <source>Structure</source>
        <translation>结构</translation>
    </message>
    <message>
        <source>Output</source>
        <translation>输出</translation>
    </message>
    <message>
        <source>Image</source>
        <translation>图像</translation>
    </message>
    <message>
        <source>Arithmetic</source>
        <translation>算术</translation>
    </message>
    <message>
        <source>Routing</source>
        <translation>路由</translation>
    </message>
    <message>
        <source>Custom</source>
        <translation>自定义</translation>
    </message>
    <message>
        <source>In this model</source>
        <translation>本模型中</translation>
    </message>
    <message>
        <source>Library</source>
        <translation>组件库</translation>
    </message>
    <message>
        <source>Search cells</source>
        <translation>搜索单元</translation>
    </message>
    <message>
        <source>Ctrl+K. Enter inserts the first one found.</source>
        <translation>Ctrl+K。按回车插入找到的第一个。</translation>
    </message>
    <message>
        <source>Cells to insert</source>
        <translation>可插入的单元</translation>
    </message>
    <message>
        <source>My cells</source>
        <translation>我的单元</translation>
    </message>
    <message>
        <source>Version %1</source>
        <translation>版本 %1</translation>
    </message>
    <message>
        <source>Script cell…</source>
        <translation>脚本单元…</translation>
    </message>
    <message>
        <source>%1 ↑ version %2</source>
        <translation>%1 ↑ 版本 %2</translation>
    </message>
    <message>
        <source>The library has version %1: right button, Update</source>
        <translation>单元库有版本 %1：右键“更新”</translation>
    </message>
    <message>
        <source>Insert</source>
        <translation>插入</translation>
    </message>
    <message>
        <source>Remove from My cells…</source>
        <translation>从“我的单元”移除…</translation>
    </message>
    <message>
        <source>Update to the library&apos;s version</source>
        <translation>更新到单元库的版本</translation>
    </message>
    <message>
        <source>Input: token ids</source>
        <translation>输入：词元编号</translation>
    </message>
    <message>
        <source>Texts as numbers of tokens, [B, T]: what a language model reads.</source>
        <translation>以词元编号表示的文本，[B, T]：语言模型读取的内容。</translation>
    </message>
    <message>
        <source>Input: features</source>
        <translation>输入：特征</translation>
    </message>
    <message>
        <source>Rows of numbers, [B, 16]; set the size on the right.</source>
        <translation>数值行，[B, 16]；在右侧设置大小。</translation>
    </message>
    <message>
        <source>Input: image</source>
        <translation>输入：图像</translation>
    </message>
    <message>
        <source>Pictures, [B, channels, height, width]; set the sizes on the right.</source>
        <translation>图像，[B, 通道, 高, 宽]；在右侧设置大小。</translation>
    </message>
    <message>
        <source>Input</source>
        <translation>输入</translation>
    </message>
    <message>
        <source>Any tensor; set its name, shape and type on the right. A composite&apos;s input takes any shape while it declares none.</source>
        <translation>任意张量；在右侧设置名称、形状和类型。复合单元的输入未声明形状时接受任何形状。</translation>
    </message>
    <message>
        <source>What the model gives: the chosen cell&apos;s output, under a name that a loss can ask for.</source>
        <translation>模型给出的结果：所选单元的输出，损失可按名称引用。</translation>
    </message>
    <message>
        <source>Inputs and outputs</source>
        <translation>输入与输出</translation>
    </message>
    <message>
        <source>Write it as a Script cell</source>
        <translation>用 Script 单元自己编写</translation>
    </message>
    <message>
        <source>Inserts a cell whose code you type</source>
        <translation>插入一个由你编写代码的单元</translation>
    </message>
    <message>
        <source>Show all cells</source>
        <translation>显示所有单元</translation>
    </message>
    <message>
        <source>No cell fits “%1”.</source>
        <translation>没有与“%1”相符的单元。</translation>
    </message>
    <message>
        <source>Did you mean %1?</source>
        <translation>是否要找 %1？</translation>
    </message>
</context>
<context>
    <name>celloom::ui::Playground</name>
    <message>
        <source>The engine went away. Send again to go on.</source>
        <translation>引擎已断开。再次发送即可继续。</translation>
    </message>
    <message>
        <source>The chat ended with exit code %1. Runs are not affected; the next question starts it anew.</source>
        <translation>对话进程已结束（退出码 %1）。运行不受影响；下次提问时会重新启动。</translation>
    </message>
    <message>
        <source>The chat crashed (signal %1). Runs are not affected; the next question starts it anew.</source>
        <translation>对话进程崩溃（信号 %1）。运行不受影响；下次提问时会重新启动。</translation>
    </message>
    <message>
        <source>The chat was killed (signal %1). Perhaps memory ran out: close a column, or choose a smaller model. Runs are not affected.</source>
        <translation>对话进程被终止（信号 %1）。可能是内存不足：请关闭一列或选择更小的模型。运行不受影响。</translation>
    </message>
    <message>
        <source>Conversation</source>
        <translation>对话</translation>
    </message>
    <message>
        <source>Question</source>
        <translation>问题</translation>
    </message>
</context>
<context>
    <name>celloom::ui::PrecisionPanel</name>
    <message>
        <source>Cells</source>
        <translation>单元</translation>
    </message>
    <message>
        <source>Type</source>
        <translation>类型</translation>
    </message>
    <message>
        <source>Computes in</source>
        <translation>计算</translation>
    </message>
    <message>
        <source>Gives</source>
        <translation>输出</translation>
    </message>
    <message>
        <source>Because of</source>
        <translation>依据</translation>
    </message>
    <message>
        <source>Types that the cells compute in</source>
        <translation>各单元的计算类型</translation>
    </message>
    <message numerus="yes">
        <source>%n cell(s) in %1</source>
        <translation>
            <numerusform>%1：%n 个单元</numerusform>
        </translation>
    </message>
    <message>
        <source>, </source>
        <translation>，</translation>
    </message>
    <message>
        <source>This processor has no instructions for %1: it saves memory here, but no time.</source>
        <translation>此处理器没有 %1 指令：能省内存，但不省时间。</translation>
    </message>
    <message>
        <source>list: in half</source>
        <translation>列表：半精度</translation>
    </message>
    <message>
        <source>list: float32</source>
        <translation>列表：float32</translation>
    </message>
    <message>
        <source>rule</source>
        <translation>规则</translation>
    </message>
    <message>
        <source>level</source>
        <translation>级别</translation>
    </message>
    <message numerus="yes">
        <source>%1: %n cell(s)</source>
        <translation>
            <numerusform>%1：%n 个单元</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>celloom::ui::PreviewRowWidget</name>
    <message>
        <source>Reading the data</source>
        <translation>正在读取数据</translation>
    </message>
    <message>
        <source>Show the field</source>
        <translation>显示该字段</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Preview first batch</source>
        <translation>预览首批数据</translation>
    </message>
    <message>
        <source>Reads and tokenises the data as the run would, and shows what its first step begins with</source>
        <translation>像运行一样读取数据并分词，显示第一步所用的内容</translation>
    </message>
    <message>
        <source>Reading and tokenising the data, %1</source>
        <translation>正在读取数据并分词，%1</translation>
    </message>
</context>
<context>
    <name>celloom::ui::Probe</name>
    <message>
        <source>Probe one batch</source>
        <translation>探测一批数据</translation>
    </message>
    <message>
        <source>Probe</source>
        <translation>探测</translation>
    </message>
    <message>
        <source>Probe: sends one batch through the model, and shows what is on each wire (F9)</source>
        <translation>探测：让一批数据通过模型，显示每条连线上的内容（F9）</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Probe again</source>
        <translation>重新探测</translation>
    </message>
    <message>
        <source>Go to the cell</source>
        <translation>转到该单元</translation>
    </message>
    <message>
        <source>Progress of the probe</source>
        <translation>探测进度</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>关闭</translation>
    </message>
    <message>
        <source>Takes the numbers off the canvas</source>
        <translation>从画布上移除这些数字</translation>
    </message>
    <message>
        <source>A probe computes every cell: the weights alone need %1, and this machine has %2 of memory free.</source>
        <translation>探测要计算每个单元：仅权重就需要 %1，而本机空闲内存为 %2。</translation>
    </message>
    <message>
        <source>Make the model smaller, for example by fewer layers.</source>
        <translation>请减小模型，例如减少层数。</translation>
    </message>
    <message>
        <source>data of the recipe</source>
        <translation>配方的数据</translation>
    </message>
    <message>
        <source>made-up data</source>
        <translation>虚构数据</translation>
    </message>
    <message>
        <source>weights of %1</source>
        <translation>%1 的权重</translation>
    </message>
    <message>
        <source>weights as a run begins</source>
        <translation>与运行开始时相同的权重</translation>
    </message>
    <message numerus="yes">
        <source>%n row(s)</source>
        <translation>
            <numerusform>%n 行</numerusform>
        </translation>
    </message>
    <message>
        <source>loss %1</source>
        <translation>损失 %1</translation>
    </message>
    <message numerus="yes">
        <source>%n wire(s) with NaN or infinite values</source>
        <translation>
            <numerusform>%n 条连线含有 NaN 或无穷值</numerusform>
        </translation>
    </message>
    <message>
        <source>The model has changed since: these numbers are old.</source>
        <translation>模型此后已更改：这些数字已过时。</translation>
    </message>
    <message>
        <source>opening the model and its data…</source>
        <translation>正在打开模型及其数据…</translation>
    </message>
    <message>
        <source>cell %1 of %2, %3</source>
        <translation>第 %1 个单元，共 %2 个：%3</translation>
    </message>
    <message>
        <source>cancelled after %1 of %2 cells</source>
        <translation>已取消，完成 %1 个单元，共 %2 个</translation>
    </message>
    <message>
        <source>Probe: %1</source>
        <translation>探测：%1</translation>
    </message>
    <message>
        <source>, </source>
        <comment>between parts of a line</comment>
        <translation>，</translation>
    </message>
</context>
<context>
    <name>celloom::ui::ProbePanel</name>
    <message>
        <source>Last probe</source>
        <translation>最近一次探测</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Probe one batch</source>
        <translation>探测一批数据</translation>
    </message>
    <message>
        <source>Sends one batch through the model as it is edited, and shows what is on each wire (F9)</source>
        <translation>让一批数据通过正在编辑的模型，显示每条连线上的内容（F9）</translation>
    </message>
    <message>
        <source>Data of the recipe</source>
        <translation>配方的数据</translation>
    </message>
    <message>
        <source>Made-up data</source>
        <translation>虚构数据</translation>
    </message>
    <message>
        <source>Batch of the probe</source>
        <translation>探测所用的批次</translation>
    </message>
    <message>
        <source>The first batch that the recipe&apos;s training would see, or numbers drawn from its seed</source>
        <translation>配方训练时会看到的第一批数据，或由其种子生成的数字</translation>
    </message>
    <message>
        <source>Gradients</source>
        <translation>梯度</translation>
    </message>
    <message>
        <source>Runs the batch as a training step does, and tells of the loss&apos;s gradient on each wire</source>
        <translation>像训练步一样运行该批次，并给出每条连线上损失的梯度</translation>
    </message>
    <message>
        <source>This batch did not reach the cell.</source>
        <translation>该批次没有到达此单元。</translation>
    </message>
    <message>
        <source>gradient of %1</source>
        <translation>%1 的梯度</translation>
    </message>
    <message>
        <source>%1 of %2 values</source>
        <translation>%1，共 %2 个值</translation>
    </message>
    <message>
        <source>mean %1   std %2   zeros %3   NaN %4</source>
        <translation>均值 %1   标准差 %2   零 %3   NaN %4</translation>
    </message>
    <message>
        <source>Attention, head</source>
        <translation>注意力，头</translation>
    </message>
    <message>
        <source>Head of the attention</source>
        <translation>注意力的头</translation>
    </message>
    <message>
        <source>  (0 to %1)</source>
        <translation>（0 到 %1）</translation>
    </message>
    <message>
        <source>Row %1 of the batch. The stronger the colour, the more a query looks at a key.</source>
        <translation>批次的第 %1 行。颜色越深，查询对该键的关注越多。</translation>
    </message>
</context>
<context>
    <name>celloom::ui::ProblemsTab</name>
    <message>
        <source>No problems found</source>
        <translation>未发现问题</translation>
    </message>
    <message>
        <source>What is wrong with the model is listed here while you build it.</source>
        <translation>搭建模型时，问题会列在这里。</translation>
    </message>
    <message>
        <source>Problems of the model</source>
        <translation>模型的问题</translation>
    </message>
    <message>
        <source>Error: %1</source>
        <translation>错误：%1</translation>
    </message>
    <message>
        <source>Warning: %1</source>
        <translation>警告：%1</translation>
    </message>
    <message>
        <source>Ctrl+. does: %1</source>
        <translation>Ctrl+. 可执行：%1</translation>
    </message>
    <message>
        <source>%1 (Ctrl+.)</source>
        <translation>%1 (Ctrl+.)</translation>
    </message>
    <message>
        <source>Something else that mends it</source>
        <translation>其他修复办法</translation>
    </message>
</context>
<context>
    <name>celloom::ui::PropertyRows</name>
    <message>
        <source>Name</source>
        <translation>名称</translation>
    </message>
    <message>
        <source>Letters, digits, _ and -. Checkpoints, rules and logs call the cell by it.</source>
        <translation>字母、数字、_ 和 -。检查点、规则和日志都用这个名称。</translation>
    </message>
    <message>
        <source>Rename %1</source>
        <translation>重命名 %1</translation>
    </message>
    <message>
        <source>Change %1 of %2</source>
        <translation>修改 %2 的 %1</translation>
    </message>
    <message>
        <source>From %1 to %2.</source>
        <translation>取值 %1 到 %2。</translation>
    </message>
    <message>
        <source>Repeat</source>
        <translation>重复</translation>
    </message>
    <message>
        <source>So many of it in a row, each fed by the one before; a number or an expression. Empty: one.</source>
        <translation>依次串接的个数，每个的输入来自前一个；可以是数字或表达式。留空为一个。</translation>
    </message>
    <message>
        <source>Repeat %1</source>
        <translation>重复 %1</translation>
    </message>
    <message>
        <source>Note</source>
        <translation>备注</translation>
    </message>
    <message>
        <source>For people to read; it goes with the document and into the code.</source>
        <translation>供人阅读；随文档保存，也会写入代码。</translation>
    </message>
    <message>
        <source>Change the note of %1</source>
        <translation>修改 %1 的备注</translation>
    </message>
    <message>
        <source>Change the port %1</source>
        <translation>修改端口 %1</translation>
    </message>
    <message>
        <source>Data columns and losses call it by this name.</source>
        <translation>数据列和损失用这个名称引用它。</translation>
    </message>
    <message>
        <source>Shape</source>
        <translation>形状</translation>
    </message>
    <message>
        <source>Numbers, hyper-parameters and free letters, parted by commas: B, T, hidden. Empty: any shape.</source>
        <translation>数字、超参数或自由字母，用逗号分隔：B, T, hidden。留空表示任意形状。</translation>
    </message>
    <message>
        <source>Type</source>
        <translation>类型</translation>
    </message>
    <message>
        <source>float follows the run&apos;s precision.</source>
        <translation>float 随运行的精度而定。</translation>
    </message>
    <message>
        <source>Change %1</source>
        <translation>修改 %1</translation>
    </message>
    <message>
        <source>A number, or an expression over the others. Emptied, it is removed.</source>
        <translation>数字，或由其他超参数组成的表达式。清空即删除。</translation>
    </message>
    <message>
        <source>New</source>
        <translation>新增</translation>
    </message>
    <message>
        <source>Adds a hyper-parameter: name = value, as in hidden = 64.</source>
        <translation>添加超参数：名称 = 值，例如 hidden = 64。</translation>
    </message>
    <message>
        <source>Add a hyper-parameter</source>
        <translation>添加超参数</translation>
    </message>
    <message>
        <source>name = value</source>
        <translation>名称 = 值</translation>
    </message>
</context>
<context>
    <name>celloom::ui::RecipeForm</name>
    <message>
        <source>Fewer fields</source>
        <translation>收起</translation>
    </message>
    <message>
        <source>“%1” is not a whole number.</source>
        <translation>“%1”不是整数。</translation>
    </message>
    <message>
        <source>“%1” is not a number.</source>
        <translation>“%1”不是数。</translation>
    </message>
    <message>
        <source>%1 is outside the range: %2.</source>
        <translation>%1 超出范围：%2。</translation>
    </message>
    <message numerus="yes">
        <source>%n more field(s)</source>
        <translation>
            <numerusform>更多字段（%n）</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>celloom::ui::ResultsCard</name>
    <message>
        <source>Loss</source>
        <translation>损失</translation>
    </message>
    <message>
        <source>Perplexity</source>
        <translation>困惑度</translation>
    </message>
    <message>
        <source>Accuracy</source>
        <translation>准确率</translation>
    </message>
    <message>
        <source>Answered exactly as expected</source>
        <translation>与标准答案完全一致</translation>
    </message>
    <message>
        <source>Texts written</source>
        <translation>已写文字数</translation>
    </message>
    <message>
        <source>Tokens a second</source>
        <translation>每秒词元数</translation>
    </message>
    <message>
        <source>Results</source>
        <translation>结果</translation>
    </message>
    <message>
        <source>The numbers appear here as soon as the run has them.</source>
        <translation>运行得出数字后显示在这里。</translation>
    </message>
</context>
<context>
    <name>celloom::ui::ResumeDialog</name>
    <message>
        <source>Resume run %1</source>
        <translation>继续训练：运行 %1</translation>
    </message>
    <message>
        <source>Resume</source>
        <translation>继续训练</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>No checkpoint was saved: the run begins again.</source>
        <translation>没有保存过检查点：运行将从头开始。</translation>
    </message>
    <message numerus="yes">
        <source>The run is complete: all %n step(s) are done. Give it more to train on.</source>
        <translation>
            <numerusform>运行已完成：%n 步全部做完。增加步数或轮数即可继续训练。</numerusform>
        </translation>
    </message>
    <message>
        <source>Goes on from %1 with step %2.</source>
        <translation>从 %1 继续，下一步是第 %2 步。</translation>
    </message>
    <message>
        <source>Goes on from %1 with step %2 of %3.</source>
        <translation>从 %1 继续，下一步是第 %2 步，共 %3 步。</translation>
    </message>
    <message>
        <source>%1: %2 → %3</source>
        <translation>%1：%2 → %3</translation>
    </message>
    <message>
        <source>The schedule is laid out over all %1 steps.</source>
        <translation>学习率计划按全部 %1 步重新展开。</translation>
    </message>
    <message>
        <source>The rate stays at %1, which was set while the run went on; another rate or schedule ends that.</source>
        <translation>学习率保持为运行中设定的 %1；改动学习率或计划后，此设定即告结束。</translation>
    </message>
    <message>
        <source>The rate of %1 that was set while the run went on ends: the schedule is in force again.</source>
        <translation>运行中设定的学习率 %1 到此结束：重新按计划进行。</translation>
    </message>
    <message>
        <source>Step %1 has the learning rate %2.</source>
        <translation>第 %1 步的学习率为 %2。</translation>
    </message>
    <message>
        <source>The loss scale begins anew.</source>
        <translation>损失缩放重新开始。</translation>
    </message>
    <message>
        <source>From step %1 on:</source>
        <translation>从第 %1 步起：</translation>
    </message>
</context>
<context>
    <name>celloom::ui::RunActions</name>
    <message>
        <source>Merge and export…</source>
        <translation>合并并导出…</translation>
    </message>
    <message>
        <source>Adds the adapter to its base&apos;s weights and writes a model that other tools read</source>
        <translation>将适配器并入基座权重，写成其他工具可读取的模型</translation>
    </message>
    <message>
        <source>Export adapter…</source>
        <translation>导出适配器…</translation>
    </message>
    <message>
        <source>Copies the adapter as PEFT reads it</source>
        <translation>按 PEFT 的格式复制适配器</translation>
    </message>
    <message>
        <source>Fine-tune this</source>
        <translation>以此微调</translation>
    </message>
    <message>
        <source>Begins a recipe whose base is the newest checkpoint of this run</source>
        <translation>以该运行的最新检查点为基座新建配方</translation>
    </message>
    <message>
        <source>Export model…</source>
        <translation>导出模型…</translation>
    </message>
    <message>
        <source>Writes the newest checkpoint as a model that other tools read</source>
        <translation>将最新检查点写成其他工具可读取的模型</translation>
    </message>
</context>
<context>
    <name>celloom::ui::RunExporter</name>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Progress of the export</source>
        <translation>导出进度</translation>
    </message>
    <message>
        <source>An export is under way; cancel it or wait for its end.</source>
        <translation>正在导出；请取消或等待其完成。</translation>
    </message>
    <message>
        <source>The run has no adapter any more.</source>
        <translation>该运行已没有适配器。</translation>
    </message>
    <message>
        <source>Merging the adapter of %1</source>
        <translation>正在合并 %1 的适配器</translation>
    </message>
    <message>
        <source>Copying the adapter of %1</source>
        <translation>正在复制 %1 的适配器</translation>
    </message>
    <message>
        <source>Exporting the model of %1</source>
        <translation>正在导出 %1 的模型</translation>
    </message>
    <message>
        <source>The adapter lies in %1.</source>
        <translation>适配器位于 %1。</translation>
    </message>
    <message>
        <source>The model lies in %1.</source>
        <translation>模型位于 %1。</translation>
    </message>
    <message>
        <source>Merged into %1. Largest logit difference to base and adapter: %2, where the adapter changed logits by up to %3.</source>
        <translation>已合并到 %1。与“基座加适配器”的 logit 最大差：%2；适配器自身对 logit 的改变至多为 %3。</translation>
    </message>
    <message>
        <source>Rounded to %1: %2.</source>
        <translation>舍入为 %1 后：%2。</translation>
    </message>
</context>
<context>
    <name>celloom::ui::RunHeader</name>
    <message>
        <source>Save now</source>
        <translation>立即保存</translation>
    </message>
    <message>
        <source>Write a checkpoint after the current step</source>
        <translation>当前步结束后写入检查点</translation>
    </message>
    <message>
        <source>Stop and save</source>
        <translation>停止并保存</translation>
    </message>
    <message>
        <source>Write a checkpoint and end the run; it can be resumed</source>
        <translation>写入检查点并结束运行，之后可以继续训练</translation>
    </message>
    <message>
        <source>Progress of the run</source>
        <translation>运行进度</translation>
    </message>
    <message>
        <source>training the tokenizer</source>
        <translation>训练分词器</translation>
    </message>
    <message>
        <source>tokenising</source>
        <translation>切分词元</translation>
    </message>
    <message>
        <source>training</source>
        <translation>训练中</translation>
    </message>
    <message>
        <source>evaluating</source>
        <translation>评估中</translation>
    </message>
    <message>
        <source>saving</source>
        <translation>保存中</translation>
    </message>
    <message>
        <source>step %1 / %2</source>
        <translation>第 %1 / %2 步</translation>
    </message>
    <message>
        <source>epoch %1 of %2</source>
        <translation>第 %1 / %2 轮</translation>
    </message>
    <message>
        <source>%1 elapsed</source>
        <translation>已用 %1</translation>
    </message>
    <message>
        <source>about %1 left</source>
        <translation>约剩 %1</translation>
    </message>
    <message>
        <source>waiting for the first step</source>
        <translation>等待第一步</translation>
    </message>
    <message>
        <source>Continue</source>
        <translation>继续</translation>
    </message>
    <message>
        <source>Pause</source>
        <translation>暂停</translation>
    </message>
    <message>
        <source>reading text</source>
        <translation>读取文本</translation>
    </message>
    <message>
        <source>building the network</source>
        <translation>构建网络</translation>
    </message>
    <message>
        <source>measuring the bigram baseline</source>
        <translation>测量二元组基线</translation>
    </message>
    <message>
        <source>writing a sample</source>
        <translation>写样例</translation>
    </message>
    <message>
        <source>paused</source>
        <translation>已暂停</translation>
    </message>
    <message>
        <source>epoch %1</source>
        <translation>第 %1 轮</translation>
    </message>
    <message>
        <source>Try</source>
        <translation>试用</translation>
    </message>
    <message>
        <source>Write text with its newest checkpoint</source>
        <translation>用它最新的检查点生成文字</translation>
    </message>
    <message>
        <source>answering held-out questions</source>
        <translation>回答留出的问题</translation>
    </message>
    <message>
        <source>Go on from the last checkpoint, with the same settings or others</source>
        <translation>从最近的检查点继续，设置可以不变，也可以修改</translation>
    </message>
    <message>
        <source>Train on…</source>
        <translation>追加训练…</translation>
    </message>
    <message>
        <source>Resume…</source>
        <translation>继续训练…</translation>
    </message>
    <message>
        <source>loading the model</source>
        <translation>载入模型</translation>
    </message>
    <message>
        <source>reading prompts</source>
        <translation>读取提示</translation>
    </message>
    <message>
        <source>writing</source>
        <translation>写作中</translation>
    </message>
    <message>
        <source>batch %1 / %2</source>
        <translation>第 %1 / %2 批</translation>
    </message>
    <message>
        <source>prompt %1 / %2</source>
        <translation>第 %1 / %2 条提示</translation>
    </message>
    <message>
        <source>waiting for the run to begin</source>
        <translation>等待运行开始</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>停止</translation>
    </message>
    <message>
        <source>End the run; resumed, it goes on after the last text that is written</source>
        <translation>结束运行；续跑时从最后写出的文字之后继续</translation>
    </message>
    <message>
        <source>End the run; resumed, it measures anew</source>
        <translation>结束运行；续跑时重新测量</translation>
    </message>
    <message>
        <source>Go on</source>
        <translation>继续</translation>
    </message>
    <message>
        <source>Measure anew</source>
        <translation>重新测量</translation>
    </message>
</context>
<context>
    <name>celloom::ui::RunTexts</name>
    <message numerus="yes">
        <source>%n cell(s) in %1</source>
        <translation>
            <numerusform>%1：%n 个单元</numerusform>
        </translation>
    </message>
    <message>
        <source>amp_level %1: %2.</source>
        <translation>amp_level %1：%2。</translation>
    </message>
    <message>
        <source>, </source>
        <translation>，</translation>
    </message>
    <message>
        <source>This machine has no instructions for %1: it saves memory here, but no time.</source>
        <translation>这台机器没有 %1 指令：能省内存，但不省时间。</translation>
    </message>
    <message numerus="yes">
        <source>Read %n token file(s)</source>
        <translation>
            <numerusform>读取了 %n 个词元文件</numerusform>
        </translation>
    </message>
    <message>
        <source>: %1 sequences of %2 tokens to learn from.</source>
        <translation>：%1 条长 %2 个词元的序列用于学习。</translation>
    </message>
    <message numerus="yes">
        <source>Read %n file(s)</source>
        <translation>
            <numerusform>读取了 %n 个文件</numerusform>
        </translation>
    </message>
    <message>
        <source> (%1): %2 to learn from, %3 held out.</source>
        <translation>（%1）：%2用于学习，留出 %3 篇用于验证。</translation>
    </message>
    <message numerus="yes">
        <source>%n document(s)</source>
        <translation>
            <numerusform>%n 篇</numerusform>
        </translation>
    </message>
    <message>
        <source>The tokenizer has %1 pieces; %2 sequences of %3 tokens to learn from.</source>
        <translation>分词器有 %1 个词元；%2 条长 %3 个词元的序列用于学习。</translation>
    </message>
    <message>
        <source>A bigram model has perplexity %1 on the validation data: a language model that learned something goes below it.</source>
        <translation>二元组模型在验证数据上的困惑度为 %1：学到东西的语言模型会低于它。</translation>
    </message>
    <message>
        <source> of named columns: %1 rows to learn from, %2 held out.</source>
        <translation>，由具名列组成：%1 行用于学习，留出 %2 行。</translation>
    </message>
    <message>
        <source>Validation loss %1 over %2 numbers.</source>
        <translation>%2 个数上的验证损失为 %1。</translation>
    </message>
    <message>
        <source>%1 improved no more: from step %2 on the learning rate is %3.</source>
        <translation>%1 不再改善：从第 %2 步起学习率为 %3。</translation>
    </message>
    <message>
        <source>%1 improved no more: the run ends early, after step %2.</source>
        <translation>%1 不再改善：运行在第 %2 步后提前结束。</translation>
    </message>
    <message>
        <source>There is no validation data to evaluate on. Name validation files, or hold out a part of the documents.</source>
        <translation>没有可供评估的验证数据。请指定验证文件，或留出一部分文档。</translation>
    </message>
    <message>
        <source>Validation loss %1, perplexity %2 over %3 tokens.</source>
        <translation>验证损失 %1，困惑度 %2（共 %3 个词元）。</translation>
    </message>
    <message>
        <source>Saved the checkpoint %1.</source>
        <translation>已保存检查点 %1。</translation>
    </message>
    <message>
        <source>Resumed from the beginning: no checkpoint had been saved.</source>
        <translation>从头继续：此前没有保存过检查点。</translation>
    </message>
    <message>
        <source>Resumed from the checkpoint %1.</source>
        <translation>从检查点 %1 继续。</translation>
    </message>
    <message numerus="yes">
        <source>All %n step(s) are done already. To train on, resume with more epochs or steps.</source>
        <translation>
            <numerusform>全部 %n 步已经完成。要继续训练，请增加轮数或步数后再继续。</numerusform>
        </translation>
    </message>
    <message>
        <source>Step %1 overflowed under the loss scale %2 and changed nothing.</source>
        <translation>第 %1 步在损失缩放 %2 下溢出，这一步没有更新权重。</translation>
    </message>
    <message>
        <source>Paused after step %1.</source>
        <translation>在第 %1 步之后暂停。</translation>
    </message>
    <message>
        <source>Continued after step %1.</source>
        <translation>在第 %1 步之后继续。</translation>
    </message>
    <message>
        <source>From step %1 on the learning rate is %2.</source>
        <translation>从第 %1 步起，学习率为 %2。</translation>
    </message>
    <message>
        <source>Validation perplexity %1; a bigram model over the same tokens has %2.</source>
        <translation>验证困惑度 %1；同样词元上的二元组模型为 %2。</translation>
    </message>
    <message>
        <source>Tensors took at most %1; the estimate says %2.</source>
        <translation>张量最多占用 %1；预估为 %2。</translation>
    </message>
    <message numerus="yes">
        <source>Finished after %n step(s).</source>
        <translation>
            <numerusform>训练完成，共 %n 步。</numerusform>
        </translation>
    </message>
    <message>
        <source>The time limit is reached: stopped after step %1.</source>
        <translation>已到时间上限：在第 %1 步之后停止。</translation>
    </message>
    <message>
        <source>Stopped after step %1.</source>
        <translation>在第 %1 步之后停止。</translation>
    </message>
    <message>
        <source>Diverged: %1</source>
        <translation>训练发散：%1</translation>
    </message>
    <message>
        <source>Failed: %1</source>
        <translation>失败：%1</translation>
    </message>
    <message>
        <source>A checkpoint is damaged, the one before it is used: %1</source>
        <translation>一个检查点已损坏，改用它之前的那个：%1</translation>
    </message>
    <message>
        <source>the process was killed (signal 9)</source>
        <translation>进程被强制结束（信号 9）</translation>
    </message>
    <message>
        <source>the process was ended (signal 15)</source>
        <translation>进程被终止（信号 15）</translation>
    </message>
    <message>
        <source>the process crashed (signal %1)</source>
        <translation>进程崩溃（信号 %1）</translation>
    </message>
    <message>
        <source>the process was ended by signal %1</source>
        <translation>进程因信号 %1 结束</translation>
    </message>
    <message>
        <source>recipe, model or data were refused</source>
        <translation>配方、模型或数据未被接受</translation>
    </message>
    <message>
        <source>the device asked for is not there</source>
        <translation>找不到所要求的设备</translation>
    </message>
    <message>
        <source>out of memory</source>
        <translation>内存不足</translation>
    </message>
    <message>
        <source>the disk is full</source>
        <translation>磁盘已满</translation>
    </message>
    <message>
        <source>the loss diverged</source>
        <translation>损失发散</translation>
    </message>
    <message>
        <source>exit code %1</source>
        <translation>退出码 %1</translation>
    </message>
    <message>
        <source>the process is gone, and nobody saw how it ended</source>
        <translation>进程已不存在，结束原因未知</translation>
    </message>
    <message>
        <source>it never started</source>
        <translation>从未启动</translation>
    </message>
    <message>
        <source>at step %1</source>
        <translation>于第 %1 步</translation>
    </message>
    <message>
        <source>%1 %2</source>
        <comment>state, at which step</comment>
        <translation>%1%2</translation>
    </message>
    <message>
        <source>%1: %2</source>
        <translation>%1：%2</translation>
    </message>
    <message>
        <source>%1. %2</source>
        <comment>what happened, details</comment>
        <translation>%1。%2</translation>
    </message>
    <message>
        <source>%1 conversations to learn from, %2 held out.</source>
        <translation>%1 条对话用于学习，留出 %2 条。</translation>
    </message>
    <message>
        <source>Chat template %1 (%2).</source>
        <translation>对话模板 %1（%2）。</translation>
    </message>
    <message>
        <source>%1 conversations became %2 sequences; %3 of %4 tokens are learned, the longest has %5 tokens.</source>
        <translation>%1 条对话成为 %2 条序列；%4 个词元中 %3 个参与学习，最长 %5 个词元。</translation>
    </message>
    <message>
        <source>Shortened: %1.</source>
        <translation>截短 %1 条。</translation>
    </message>
    <message>
        <source>Left out: %1.</source>
        <translation>舍弃 %1 条。</translation>
    </message>
    <message>
        <source>Without a token to learn: %1.</source>
        <translation>无可学词元 %1 条。</translation>
    </message>
    <message>
        <source>%1 of %2 held-out questions answered exactly as expected.</source>
        <translation>留出的 %2 个问题中 %1 个回答完全一致。</translation>
    </message>
    <message>
        <source>Before training the base answers %1 of %2 held-out questions exactly as expected.</source>
        <translation>训练前，基座对留出的 %2 个问题答对 %1 个。</translation>
    </message>
    <message>
        <source>Held-out questions answered exactly as expected: %1 % before training, %2 % now.</source>
        <translation>留出问题完全答对的比例：训练前 %1 %，现在 %2 %。</translation>
    </message>
    <message>
        <source>Step %1 had no token to learn from and changed nothing.</source>
        <translation>第 %1 步没有可学习的词元，未作任何改动。</translation>
    </message>
    <message>
        <source>Uses cells of %1, SHA-256 %2.</source>
        <translation>使用 %1 中的 Cell，SHA-256 为 %2。</translation>
    </message>
    <message>
        <source>Trainable %1 %: %2 of %3 parameters; their gradients and moments take %4, of a full training %5.</source>
        <translation>可训练 %1 %：%3 个参数中的 %2 个；其梯度与矩估计占 %4，全量训练则为 %5。</translation>
    </message>
    <message numerus="yes">
        <source>Adapters stand beside %n cell(s).</source>
        <translation>
            <numerusform>%n 个单元带适配器。</numerusform>
        </translation>
    </message>
    <message>
        <source>Saved the adapter in %1.</source>
        <translation>适配器已保存到 %1。</translation>
    </message>
    <message>
        <source>Changed from step %1 on: %2.</source>
        <translation>从第 %1 步起改动：%2。</translation>
    </message>
    <message>
        <source>The learning rate stays at %1, which was set while the run went on.</source>
        <translation>学习率保持为运行中设定的 %1。</translation>
    </message>
    <message>
        <source>The learning rate of %1 that was set while the run went on ends.</source>
        <translation>运行中设定的学习率 %1 到此结束。</translation>
    </message>
    <message>
        <source>Step %1 has the learning rate %2.</source>
        <translation>第 %1 步的学习率为 %2。</translation>
    </message>
    <message>
        <source>The loss scale begins anew.</source>
        <translation>损失缩放重新开始。</translation>
    </message>
    <message>
        <source>%1 steps in a row have overflowed and changed nothing; the loss scale is %2. Unless it ends, the run stops after %3. Stop it, and resume with a lower learning rate or in bfloat16.</source>
        <translation>已连续 %1 步溢出，未作任何更新；损失缩放为 %2。若不停止溢出，连续 %3 步后运行将终止。请停止运行，降低学习率或改用 bfloat16 后再继续训练。</translation>
    </message>
    <message>
        <source>%1 was deleted or replaced. The run goes on with what it has open; a resume will need the file as it was.</source>
        <translation>%1 已被删除或替换。运行继续使用已打开的内容；续训时需要原来的文件。</translation>
    </message>
    <message>
        <source>Step %1: the gradient is NaN or infinite; training stopped before the update.</source>
        <translation>第 %1 步的梯度为 NaN 或无穷大；训练在更新之前停止。</translation>
    </message>
    <message>
        <source>Step %1: the loss is NaN or infinite; training stopped before the update.</source>
        <translation>第 %1 步的损失为 NaN 或无穷大；训练在更新之前停止。</translation>
    </message>
    <message>
        <source>Lower the learning rate, lengthen the warm-up or clip gradients.</source>
        <translation>请降低学习率、延长预热或裁剪梯度。</translation>
    </message>
    <message>
        <source>No checkpoint was saved before.</source>
        <translation>此前没有保存过检查点。</translation>
    </message>
    <message>
        <source>The last good checkpoint is %1: resume from it with other settings.</source>
        <translation>最近的完好检查点是 %1：可修改设置后从它继续训练。</translation>
    </message>
    <message>
        <source>Paused.</source>
        <translation>已暂停。</translation>
    </message>
    <message>
        <source>Continued.</source>
        <translation>已继续。</translation>
    </message>
    <message>
        <source>Step %1 is saved already.</source>
        <translation>第 %1 步已经保存过。</translation>
    </message>
    <message>
        <source>There is no tokenizer to write with: the run learns from token files, and its recipe names none.</source>
        <translation>没有可用来写作的分词器：该运行从词元文件学习，配方也未指定。</translation>
    </message>
    <message>
        <source>Wrote samples after step %1.</source>
        <translation>第 %1 步后写了样例。</translation>
    </message>
    <message>
        <source>A run that does not train makes no steps, saves nothing and has no learning rate: it cannot obey “%1”.</source>
        <translation>不训练的运行没有步，不保存，也没有学习率：无法执行“%1”。</translation>
    </message>
    <message>
        <source>Opened %1: %2 parameters.</source>
        <translation>已打开 %1：%2 个参数。</translation>
    </message>
    <message numerus="yes">
        <source>: %n document(s) to measure on.</source>
        <translation>
            <numerusform>，用来测量的文档 %n 个。</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>: %n conversation(s) to measure on.</source>
        <translation>
            <numerusform>，用来测量的对话 %n 条。</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>: %n sequence(s) to measure on.</source>
        <translation>
            <numerusform>，用来测量的序列 %n 条。</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Read %n prompt(s) from %1.</source>
        <translation>
            <numerusform>从 %1 读入 %n 条提示。</numerusform>
        </translation>
    </message>
    <message>
        <source>%1 of %2 texts are in %3.</source>
        <translation>%2 条中的 %1 条已写入 %3。</translation>
    </message>
    <message>
        <source>%1 of %2 questions are answered exactly as expected.</source>
        <translation>%2 个问题中有 %1 个回答与标准答案完全一致。</translation>
    </message>
    <message numerus="yes">
        <source>Finished: %n batch(es) measured.</source>
        <translation>
            <numerusform>完成：测量了 %n 批。</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Finished: %n prompt(s) answered.</source>
        <translation>
            <numerusform>完成：回答了 %n 条提示。</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Stopped after %n batch(es).</source>
        <translation>
            <numerusform>在 %n 批后停止。</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Stopped after %n prompt(s).</source>
        <translation>
            <numerusform>在 %n 条提示后停止。</numerusform>
        </translation>
    </message>
    <message>
        <source>after %1 of %2</source>
        <translation>在 %1 / %2 之后</translation>
    </message>
    <message>
        <source>Pretrain</source>
        <translation>预训练</translation>
    </message>
    <message>
        <source>Fine-tune</source>
        <translation>微调</translation>
    </message>
    <message>
        <source>Evaluate</source>
        <translation>评估</translation>
    </message>
    <message>
        <source>Predict</source>
        <translation>预测</translation>
    </message>
    <message>
        <source>%1 has printed %2 lines; what follows is in the log alone.</source>
        <translation>%1 已输出 %2 行；之后的只写入日志。</translation>
    </message>
    <message>
        <source>%1 has changed: saved values that fit it no longer begin anew.</source>
        <translation>%1 已修改：不再适用的已存数值重新开始。</translation>
    </message>
    <message>
        <source>%1, line %2</source>
        <translation>%1 第 %2 行</translation>
    </message>
    <message>
        <source>%1 The run goes on without it.</source>
        <translation>%1 运行继续，不再使用它。</translation>
    </message>
    <message>
        <source>%1 The run saves and ends.</source>
        <translation>%1 运行将保存并结束。</translation>
    </message>
    <message>
        <source>Its weights are those of step %1 again.</source>
        <translation>权重已恢复为第 %1 步的。</translation>
    </message>
</context>
<context>
    <name>celloom::ui::RunsModel</name>
    <message>
        <source>Run</source>
        <translation>运行</translation>
    </message>
    <message>
        <source>Name</source>
        <translation>名称</translation>
    </message>
    <message>
        <source>State</source>
        <translation>状态</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Precision</source>
        <translation>精度</translation>
    </message>
    <message>
        <source>Rate</source>
        <translation>学习率</translation>
    </message>
    <message>
        <source>Loss</source>
        <translation>损失</translation>
    </message>
    <message>
        <source>Perplexity</source>
        <translation>困惑度</translation>
    </message>
    <message>
        <source>Tokens/s</source>
        <translation>词元/秒</translation>
    </message>
    <message>
        <source>Time</source>
        <translation>用时</translation>
    </message>
    <message>
        <source>Steps</source>
        <translation>步数</translation>
    </message>
    <message>
        <source>Created</source>
        <translation>创建时间</translation>
    </message>
    <message>
        <source>Tags</source>
        <translation>标签</translation>
    </message>
    <message>
        <source>The highest learning rate of the recipe</source>
        <translation>配方中的最高学习率</translation>
    </message>
    <message>
        <source>Kind</source>
        <translation>类型</translation>
    </message>
</context>
<context>
    <name>celloom::ui::SamplingPanel</name>
    <message>
        <source>Sampling</source>
        <translation>采样</translation>
    </message>
    <message>
        <source>Temperature</source>
        <translation>温度</translation>
    </message>
    <message>
        <source>0: always the likeliest token. Higher: more varied.</source>
        <translation>0：总取最可能的词元。越高越多样。</translation>
    </message>
    <message>
        <source>Top-k</source>
        <translation>Top-k</translation>
    </message>
    <message>
        <source>Only the k likeliest tokens are drawn from. 0: all.</source>
        <translation>只从最可能的 k 个词元中抽取。0：全部。</translation>
    </message>
    <message>
        <source>Top-p</source>
        <translation>Top-p</translation>
    </message>
    <message>
        <source>Only the fewest tokens whose probabilities reach this sum. 1: all.</source>
        <translation>只从概率之和达到此值的最少词元中抽取。1：全部。</translation>
    </message>
    <message>
        <source>Repetition penalty</source>
        <translation>重复惩罚</translation>
    </message>
    <message>
        <source>Above 1: tokens that are there already become less likely. 1: off.</source>
        <translation>大于 1：已出现的词元更不容易再出现。1：关闭。</translation>
    </message>
    <message>
        <source>Most tokens</source>
        <translation>词元上限</translation>
    </message>
    <message>
        <source>An answer ends after so many.</source>
        <translation>回答至多这么多词元。</translation>
    </message>
    <message>
        <source>Seed</source>
        <translation>种子</translation>
    </message>
    <message>
        <source>The same seed gives the same answer. Asking again takes the next one.</source>
        <translation>种子相同，回答相同。再问一次时取下一个种子。</translation>
    </message>
    <message>
        <source>Stop strings</source>
        <translation>停止串</translation>
    </message>
    <message>
        <source>An answer ends before the first of these. | parts them, \n is a line&apos;s end.</source>
        <translation>遇到其中任何一个之前即结束回答。用 | 分隔，\n 表示换行。</translation>
    </message>
</context>
<context>
    <name>celloom::ui::SaveCellDialog</name>
    <message>
        <source>Save to My cells</source>
        <translation>存入“我的单元”</translation>
    </message>
    <message>
        <source>What it does, or what is new in this version</source>
        <translation>它的作用，或此版本的新内容</translation>
    </message>
    <message>
        <source>Name</source>
        <translation>名称</translation>
    </message>
    <message>
        <source>Note</source>
        <translation>备注</translation>
    </message>
    <message>
        <source>Save</source>
        <translation>保存</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>A new entry; all models of this workspace can use it.</source>
        <translation>新条目；此工作区的所有模型都可以使用。</translation>
    </message>
    <message>
        <source>Version %1 of %2. Version %3 is kept, and models that have a copy of it keep that until they are updated.</source>
        <translation>%2 的版本 %1。版本 %3 会保留，已有其副本的模型在更新之前保持不变。</translation>
    </message>
</context>
<context>
    <name>celloom::ui::ScriptPanel</name>
    <message>
        <source>Source of the callback or metric</source>
        <translation>回调或指标的源代码</translation>
    </message>
    <message>
        <source>Tab indents, Shift+Tab goes back; Escape leaves the editor.</source>
        <translation>Tab 缩进，Shift+Tab 取消缩进；Esc 离开编辑器。</translation>
    </message>
    <message>
        <source>class MyCallback(Callback): …</source>
        <translation>class MyCallback(Callback): …</translation>
    </message>
    <message>
        <source>Your callbacks and metrics</source>
        <translation>自定义回调和指标</translation>
    </message>
    <message>
        <source>Go to</source>
        <translation>转到</translation>
    </message>
    <message>
        <source>Go to the place in the source</source>
        <translation>转到源代码中的位置</translation>
    </message>
    <message>
        <source>None. Add one from a template or from a .py file: a class like MindSpore&apos;s Callback or Metric, or a schedule of the learning rate.</source>
        <translation>暂无。可从模板或 .py 文件添加：像 MindSpore 的 Callback 或 Metric 那样的类，或学习率计划函数。</translation>
    </message>
    <message>
        <source>Your own callbacks and metrics</source>
        <translation>自定义回调和指标</translation>
    </message>
    <message>
        <source>Help on %1</source>
        <translation>关于“%1”的帮助</translation>
    </message>
    <message>
        <source>Add</source>
        <translation>添加</translation>
    </message>
    <message>
        <source>Add a callback, a schedule or a metric</source>
        <translation>添加回调、学习率计划或指标</translation>
    </message>
    <message>
        <source>Callback that sets the learning rate</source>
        <translation>设置学习率的回调</translation>
    </message>
    <message>
        <source>Schedule of the learning rate</source>
        <translation>学习率计划</translation>
    </message>
    <message>
        <source>Callback that stops the run</source>
        <translation>停止运行的回调</translation>
    </message>
    <message>
        <source>Metric</source>
        <translation>指标</translation>
    </message>
    <message>
        <source>From a .py file…</source>
        <translation>从 .py 文件…</translation>
    </message>
    <message>
        <source>Name</source>
        <translation>名称</translation>
    </message>
    <message>
        <source>Name of the script</source>
        <translation>脚本名称</translation>
    </message>
    <message>
        <source>Shown in events; a metric is measured as eval/name</source>
        <translation>显示在事件中；指标以 eval/名称 记录</translation>
    </message>
    <message>
        <source>Earlier</source>
        <translation>提前</translation>
    </message>
    <message>
        <source>Is called before the one on its left</source>
        <translation>比左侧的先调用</translation>
    </message>
    <message>
        <source>Later</source>
        <translation>推后</translation>
    </message>
    <message>
        <source>Is called after the one on its right</source>
        <translation>比右侧的后调用</translation>
    </message>
    <message>
        <source>Remove</source>
        <translation>移除</translation>
    </message>
    <message>
        <source>Remove this script</source>
        <translation>移除此脚本</translation>
    </message>
    <message>
        <source>Open a Python file</source>
        <translation>打开 Python 文件</translation>
    </message>
    <message>
        <source>Python (*.py);;All files (*)</source>
        <translation>Python (*.py);;所有文件 (*)</translation>
    </message>
    <message>
        <source>%1 is not valid UTF-8 text.</source>
        <translation>%1 不是有效的 UTF-8 文本。</translation>
    </message>
    <message>
        <source>%1 is empty.</source>
        <translation>%1 是空的。</translation>
    </message>
    <message>
        <source>Line %1, column %2: %3</source>
        <translation>第 %1 行第 %2 列：%3</translation>
    </message>
    <message>
        <source>Read from %1 when the run is submitted.</source>
        <translation>提交运行时从 %1 读入。</translation>
    </message>
    <message>
        <source>Not checked: %1</source>
        <translation>未检查：%1</translation>
    </message>
    <message>
        <source>Checking…</source>
        <translation>正在检查…</translation>
    </message>
    <message>
        <source>Metric %1, measured in each evaluation as eval/%2.</source>
        <translation>指标 %1，每次评估时以 eval/%2 记录。</translation>
    </message>
    <message>
        <source>Schedule %1, asked after each step.</source>
        <translation>学习率计划 %1，每步之后调用。</translation>
    </message>
    <message>
        <source>Callback %1: %2.</source>
        <translation>回调 %1：%2。</translation>
    </message>
    <message>
        <source>needs a value</source>
        <translation>需要取值</translation>
    </message>
    <message>
        <source>Value of %1</source>
        <translation>%1 的值</translation>
    </message>
</context>
<context>
    <name>celloom::ui::TargetTreeModel</name>
    <message>
        <source>%1 of %2</source>
        <translation>%1 / %2</translation>
    </message>
    <message>
        <source>What ticking all of it gives, at the rank chosen</source>
        <translation>按所选的秩，全部勾选时的数量</translation>
    </message>
    <message>
        <source>%1, %2 adapters, %3 parameters</source>
        <translation>%1，%2 个适配器，%3 个参数</translation>
    </message>
    <message>
        <source>Cell</source>
        <translation>单元</translation>
    </message>
    <message>
        <source>Adapters</source>
        <translation>适配器</translation>
    </message>
    <message>
        <source>Parameters</source>
        <translation>参数</translation>
    </message>
    <message>
        <source>Size</source>
        <translation>大小</translation>
    </message>
</context>
<context>
    <name>celloom::ui::TokenView</name>
    <message>
        <source>Row %1</source>
        <translation>第 %1 行</translation>
    </message>
    <message numerus="yes">
        <source>%n token(s)</source>
        <translation>
            <numerusform>%n 个词元</numerusform>
        </translation>
    </message>
    <message>
        <source>%1 learned</source>
        <translation>%1 个参与学习</translation>
    </message>
    <message numerus="yes">
        <source>%n document(s)</source>
        <translation>
            <numerusform>%n 个文档</numerusform>
        </translation>
    </message>
    <message>
        <source>%1 of padding</source>
        <translation>填充 %1</translation>
    </message>
    <message>
        <source>“%1”, token %2</source>
        <translation>“%1”，词元 %2</translation>
    </message>
    <message>
        <source>row %1, position %2</source>
        <translation>第 %1 行，位置 %2</translation>
    </message>
    <message>
        <source>document %1</source>
        <translation>文档 %1</translation>
    </message>
    <message>
        <source>learned: its label counts</source>
        <translation>参与学习：其标签计入损失</translation>
    </message>
    <message>
        <source>not learned</source>
        <translation>不学习</translation>
    </message>
    <message>
        <source>a mark, not text</source>
        <translation>标记，不是文字</translation>
    </message>
</context>
<context>
    <name>celloom::ui::TopBar</name>
    <message>
        <source>Start page</source>
        <translation>起始页</translation>
    </message>
    <message>
        <source>Device</source>
        <translation>设备</translation>
    </message>
    <message>
        <source>Where the next run computes</source>
        <translation>下一次运行在哪里计算</translation>
    </message>
    <message>
        <source>Validate  F7</source>
        <translation>检查  F7</translation>
    </message>
    <message>
        <source>Check the recipe and the model without running</source>
        <translation>检查配方和模型，但不运行</translation>
    </message>
    <message>
        <source>Run  F5</source>
        <translation>运行  F5</translation>
    </message>
    <message>
        <source>Start a run of this recipe</source>
        <translation>用此配方开始运行</translation>
    </message>
    <message>
        <source>Device: %1</source>
        <translation>设备：%1</translation>
    </message>
    <message>
        <source>untitled</source>
        <translation>未命名</translation>
    </message>
</context>
<context>
    <name>celloom::ui::TrainPage</name>
    <message>
        <source>Open…</source>
        <translation>打开…</translation>
    </message>
    <message>
        <source>Open a recipe (Ctrl+O)</source>
        <translation>打开配方 (Ctrl+O)</translation>
    </message>
    <message>
        <source>Save</source>
        <translation>保存</translation>
    </message>
    <message>
        <source>Save the recipe (Ctrl+S)</source>
        <translation>保存配方 (Ctrl+S)</translation>
    </message>
    <message>
        <source>Save as…</source>
        <translation>另存为…</translation>
    </message>
    <message>
        <source>Learning rate over the run</source>
        <translation>学习率曲线</translation>
    </message>
    <message>
        <source>step</source>
        <translation>步</translation>
    </message>
    <message>
        <source>Command</source>
        <translation>命令</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>复制</translation>
    </message>
    <message>
        <source>Copy the text</source>
        <translation>复制文本</translation>
    </message>
    <message>
        <source>The run as text</source>
        <translation>运行的文本形式</translation>
    </message>
    <message>
        <source>Reset</source>
        <translation>恢复默认</translation>
    </message>
    <message>
        <source>Help</source>
        <translation>帮助</translation>
    </message>
    <message>
        <source>Choose a field: what it means, its range and its default are shown here. Fields that differ from their default have a bold label.</source>
        <translation>选中一个字段，这里会显示其含义、范围和默认值。与默认值不同的字段名以粗体显示。</translation>
    </message>
    <message>
        <source>Range: %1</source>
        <translation>范围：%1</translation>
    </message>
    <message>
        <source>Default: %1</source>
        <translation>默认值：%1</translation>
    </message>
    <message>
        <source>empty</source>
        <translation>空</translation>
    </message>
    <message>
        <source>In the file: %1</source>
        <translation>文件中的键：%1</translation>
    </message>
    <message>
        <source>First step %1, peak %2, last step %3.</source>
        <translation>首步 %1，峰值 %2，末步 %3。</translation>
    </message>
    <message>
        <source>Drawn for %1 steps; the run&apos;s own number follows from the data and the epochs.</source>
        <translation>按 %1 步绘制；实际步数由数据和轮数决定。</translation>
    </message>
    <message>
        <source>Save the recipe first: the command reads the file.</source>
        <translation>请先保存配方：命令读取的是文件。</translation>
    </message>
    <message>
        <source>Go to the section %1</source>
        <translation>转到“%1”</translation>
    </message>
    <message>
        <source>%1: %2 parameters in %3 cells</source>
        <translation>%1：%3 个单元，共 %2 个参数</translation>
    </message>
    <message>
        <source>%1 frozen</source>
        <translation>%1 个冻结</translation>
    </message>
    <message>
        <source>%1 with LoRA</source>
        <translation>%1 个带 LoRA</translation>
    </message>
    <message>
        <source>Save recipe</source>
        <translation>保存配方</translation>
    </message>
    <message>
        <source>Recipes (*.json)</source>
        <translation>配方 (*.json)</translation>
    </message>
    <message>
        <source>Some fields hold no valid value yet; the file would not have them. Correct the marked fields first.</source>
        <translation>有些字段还没有有效值，文件中会缺少它们。请先改正标出的字段。</translation>
    </message>
    <message>
        <source>The same run as</source>
        <translation>等价写法</translation>
    </message>
    <message>
        <source>At most %1 of memory for tensors, %2: weights %3, gradients %4, optimizer %5, activations %6.</source>
        <translation>张量最多占内存 %1（%2）：权重 %3，梯度 %4，优化器 %5，激活 %6。</translation>
    </message>
    <message>
        <source>This machine has %1 of memory free.</source>
        <translation>本机可用内存 %1。</translation>
    </message>
    <message>
        <source>More than this machine has: %1 of memory is free.</source>
        <translation>超出本机：可用内存只有 %1。</translation>
    </message>
    <message>
        <source>Work of a step: %1FLOP in %2 tokens.</source>
        <translation>每步计算量：%1FLOP，%2 个词元。</translation>
    </message>
    <message>
        <source>in the forward pass</source>
        <translation>前向时</translation>
    </message>
    <message>
        <source>in the backward pass</source>
        <translation>反向时</translation>
    </message>
    <message>
        <source>in the optimizer&apos;s update</source>
        <translation>优化器更新时</translation>
    </message>
    <message>
        <source>in an evaluation</source>
        <translation>评估时</translation>
    </message>
    <message>
        <source>Longer than the model&apos;s max_positions, %1. Shorten the sequences; for a model that begins empty, set max_positions=%2 in the overrides instead.</source>
        <translation>超过模型的 max_positions（%1）。请缩短序列；若模型从头训练，也可在覆盖项中设 max_positions=%2。</translation>
    </message>
    <message numerus="yes">
        <source>On disk %1 a checkpoint, %n of them kept.</source>
        <translation>
            <numerusform>每个检查点占磁盘 %1，最多保留 %n 个。</numerusform>
        </translation>
    </message>
    <message>
        <source>Undo</source>
        <translation>撤销</translation>
    </message>
    <message>
        <source>Redo</source>
        <translation>重做</translation>
    </message>
</context>
<context>
    <name>celloom::ui::TranscriptView</name>
    <message>
        <source>stopped</source>
        <translation>已停止</translation>
    </message>
    <message>
        <source>as many tokens as were asked for</source>
        <translation>已到词元上限</translation>
    </message>
    <message>
        <source>the model&apos;s context is full</source>
        <translation>模型的上下文已满</translation>
    </message>
    <message>
        <source>the model ended the text at once</source>
        <translation>模型立即结束了文本</translation>
    </message>
</context>
<context>
    <name>celloom::ui::TreatmentRows</name>
    <message>
        <source>Freeze</source>
        <translation>冻结</translation>
    </message>
    <message>
        <source>Train</source>
        <translation>训练</translation>
    </message>
    <message>
        <source>LoRA adapter</source>
        <translation>LoRA 适配器</translation>
    </message>
    <message>
        <source>Compute in float32</source>
        <translation>以 float32 计算</translation>
    </message>
    <message>
        <source>Compute in bfloat16</source>
        <translation>以 bfloat16 计算</translation>
    </message>
    <message>
        <source>Compute in float16</source>
        <translation>以 float16 计算</translation>
    </message>
    <message>
        <source>Recompute</source>
        <translation>重计算</translation>
    </message>
    <message>
        <source>Do not recompute</source>
        <translation>不重计算</translation>
    </message>
    <message>
        <source>Learning rate ×</source>
        <translation>学习率 ×</translation>
    </message>
    <message>
        <source>Weight decay</source>
        <translation>权重衰减</translation>
    </message>
    <message>
        <source>Train the bias</source>
        <translation>训练偏置</translation>
    </message>
    <message>
        <source>Learn whole, in the adapter&apos;s file</source>
        <translation>整体训练，存入适配器文件</translation>
    </message>
    <message>
        <source>Pipeline stage</source>
        <translation>流水线阶段</translation>
    </message>
    <message>
        <source>By the recipe&apos;s LoRA section everything is frozen but the adapters that it names; rules come after it.</source>
        <translation>按配方的 LoRA 部分，除其指定的适配器外全部冻结；规则在其后生效。</translation>
    </message>
    <message>
        <source>Recomputed by train.recompute; rules come after it.</source>
        <translation>由 train.recompute 重计算；规则在其后生效。</translation>
    </message>
    <message>
        <source>Rule %1</source>
        <translation>规则 %1</translation>
    </message>
    <message>
        <source>Remove this rule from the recipe</source>
        <translation>从配方中移除此规则</translation>
    </message>
    <message>
        <source>Remove rule %1</source>
        <translation>移除规则 %1</translation>
    </message>
    <message numerus="yes">
        <source>Rule %1 reaches %n cell(s)</source>
        <translation>
            <numerusform>规则 %1 作用于 %n 个单元</numerusform>
        </translation>
    </message>
    <message>
        <source>overridden here by a later one</source>
        <translation>在此被后面的规则覆盖</translation>
    </message>
    <message>
        <source>New rule…</source>
        <translation>新建规则…</translation>
    </message>
    <message>
        <source>Freeze it, give it an adapter, another precision or rate: as a rule of the recipe</source>
        <translation>冻结、加适配器、改精度或学习率：写成配方的一条规则</translation>
    </message>
    <message>
        <source>What the rule gives</source>
        <translation>规则的内容</translation>
    </message>
    <message>
        <source>Value</source>
        <translation>值</translation>
    </message>
    <message>
        <source>For which cells</source>
        <translation>作用于哪些单元</translation>
    </message>
    <message>
        <source>In all repeats</source>
        <translation>所有重复实例</translation>
    </message>
    <message>
        <source>The whole model</source>
        <translation>整个模型</translation>
    </message>
    <message>
        <source>This one alone</source>
        <translation>仅此一个</translation>
    </message>
    <message>
        <source>A pattern</source>
        <translation>按模式</translation>
    </message>
    <message>
        <source>Pattern of paths</source>
        <translation>路径模式</translation>
    </message>
    <message>
        <source>* stands for one name, ** for any number of them, {3..5} for a range, {a,b} for either</source>
        <translation>* 代表一个名称，** 代表任意多个，{3..5} 代表范围，{a,b} 代表二者之一</translation>
    </message>
    <message>
        <source>Add the rule</source>
        <translation>添加规则</translation>
    </message>
    <message numerus="yes">
        <source>matches %n cell(s)</source>
        <translation>
            <numerusform>匹配 %n 个单元</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>celloom::ui::TryPage</name>
    <message>
        <source>Open a model folder…</source>
        <translation>打开模型文件夹…</translation>
    </message>
    <message>
        <source>Train the example first</source>
        <translation>先训练示例</translation>
    </message>
    <message>
        <source>There is no model to try yet</source>
        <translation>还没有可试用的模型</translation>
    </message>
    <message>
        <source>Text from any model streams here: from a run once it has saved a checkpoint, or from a model folder on disk, which may be dropped here too.</source>
        <translation>任何模型都可在此流式生成文字：已保存检查点的运行，或磁盘上的模型文件夹（也可拖放到这里）。</translation>
    </message>
    <message>
        <source>Ask a model</source>
        <translation>向模型提问</translation>
    </message>
    <message>
        <source>One to four models answer the same question side by side: runs, checkpoints, or model folders, which may be dropped here too. Training is not disturbed.</source>
        <translation>一到四个模型并排回答同一个问题：运行、检查点或模型文件夹（也可拖放到这里）。不影响训练。</translation>
    </message>
    <message>
        <source>Try %1</source>
        <translation>试用 %1</translation>
    </message>
    <message>
        <source>How the question is asked</source>
        <translation>提问方式</translation>
    </message>
    <message>
        <source>Free text is continued as it stands. In a chat, the questions and answers before go along, in the form that the model was taught.</source>
        <translation>自由文本会原样续写。对话时会按模型学过的格式带上之前的问答。</translation>
    </message>
    <message>
        <source>Add a column</source>
        <translation>添加一列</translation>
    </message>
    <message>
        <source>Another model that answers the same questions</source>
        <translation>再添加一个模型，回答同样的问题</translation>
    </message>
    <message>
        <source>Colours</source>
        <translation>着色</translation>
    </message>
    <message>
        <source>Tint what the model was not sure of</source>
        <translation>标出模型没有把握的文字</translation>
    </message>
    <message>
        <source>Sampling</source>
        <translation>采样</translation>
    </message>
    <message>
        <source>How tokens are chosen</source>
        <translation>词元的选取方式</translation>
    </message>
    <message>
        <source>Save ▾</source>
        <translation>保存 ▾</translation>
    </message>
    <message>
        <source>Save the conversation</source>
        <translation>保存对话</translation>
    </message>
    <message>
        <source>As Markdown…</source>
        <translation>保存为 Markdown…</translation>
    </message>
    <message>
        <source>As JSON, with tokens…</source>
        <translation>保存为 JSON（含词元）…</translation>
    </message>
    <message>
        <source>Clear</source>
        <translation>清空</translation>
    </message>
    <message>
        <source>Begin a new conversation</source>
        <translation>开始新的对话</translation>
    </message>
    <message>
        <source>System message: how the model should behave (optional)</source>
        <translation>系统消息：模型应如何表现（可不填）</translation>
    </message>
    <message>
        <source>System message</source>
        <translation>系统消息</translation>
    </message>
    <message>
        <source>Question</source>
        <translation>问题</translation>
    </message>
    <message>
        <source>Open a model folder</source>
        <translation>打开模型文件夹</translation>
    </message>
    <message>
        <source>Open an adapter folder</source>
        <translation>打开适配器文件夹</translation>
    </message>
    <message>
        <source>Free text</source>
        <translation>自由文本</translation>
    </message>
    <message>
        <source>Chat, each model&apos;s template</source>
        <translation>对话（各模型自己的模板）</translation>
    </message>
    <message>
        <source>Chat, %1</source>
        <translation>对话（%1）</translation>
    </message>
    <message>
        <source>A question to all models. Enter sends, Shift+Enter begins a line, Esc stops.</source>
        <translation>向所有模型提问。回车发送，Shift+回车换行，Esc 停止。</translation>
    </message>
    <message>
        <source>A text that the models continue. Enter sends, Shift+Enter begins a line, Esc stops.</source>
        <translation>由模型续写的文本。回车发送，Shift+回车换行，Esc 停止。</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>停止</translation>
    </message>
    <message>
        <source>Send</source>
        <translation>发送</translation>
    </message>
    <message>
        <source>JSON (*.json)</source>
        <translation>JSON (*.json)</translation>
    </message>
    <message>
        <source>Markdown (*.md)</source>
        <translation>Markdown (*.md)</translation>
    </message>
    <message>
        <source>%1 cannot be written: %2</source>
        <translation>无法写入 %1：%2</translation>
    </message>
</context>
<context>
    <name>celloom::ui::UnsavedDialog</name>
    <message>
        <source>Unsaved changes</source>
        <translation>未保存的改动</translation>
    </message>
    <message>
        <source>The model %1 has unsaved changes.</source>
        <translation>模型 %1 有未保存的改动。</translation>
    </message>
    <message numerus="yes">
        <source>%n models have unsaved changes:</source>
        <translation>
            <numerusform>%n 个模型有未保存的改动：</numerusform>
        </translation>
    </message>
    <message>
        <source>Save</source>
        <translation>保存</translation>
    </message>
    <message>
        <source>Save all</source>
        <translation>全部保存</translation>
    </message>
    <message>
        <source>Discard</source>
        <translation>放弃</translation>
    </message>
    <message>
        <source>Discard all</source>
        <translation>全部放弃</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>The recipe %1 has unsaved changes.</source>
        <translation>配方 %1 有未保存的改动。</translation>
    </message>
    <message numerus="yes">
        <source>The recipe and %n model(s) have unsaved changes:</source>
        <translation>
            <numerusform>配方和 %n 个模型有未保存的改动：</numerusform>
        </translation>
    </message>
    <message>
        <source>Recipe: %1</source>
        <translation>配方：%1</translation>
    </message>
    <message>
        <source>What has unsaved changes</source>
        <translation>有未保存改动的内容</translation>
    </message>
</context>
<context>
    <name>celloom::ui::WeightsBar</name>
    <message>
        <source>there</source>
        <translation>文件夹中为</translation>
    </message>
    <message>
        <source>without weights (%1):</source>
        <translation>没有权重（%1）：</translation>
    </message>
    <message>
        <source>of another size (%1):</source>
        <translation>大小不同（%1）：</translation>
    </message>
    <message>
        <source>left over (%1):</source>
        <translation>多余（%1）：</translation>
    </message>
    <message>
        <source>The weights of %1 are not used: a run of this model begins from scratch.</source>
        <translation>未使用 %1 的权重：此模型的运行将从零开始。</translation>
    </message>
    <message>
        <source>A run begins with the weights of %1. Whether they fit is known once the model has no errors.</source>
        <translation>运行从 %1 的权重开始。模型没有错误之后才能知道它们是否相符。</translation>
    </message>
    <message>
        <source>The weights of %1 do not fit any more, and a run would be refused: %2</source>
        <translation>%1 的权重不再相符，运行会被拒绝：%2</translation>
    </message>
    <message>
        <source>A run begins with the weights of %1: all %2 tensors fit. Cells without weights may come and go; adding, removing, renaming or resizing one with weights breaks this.</source>
        <translation>运行从 %1 的权重开始：全部 %2 个张量相符。没有权重的单元可以增删；增加、删除、重命名带权重的单元或改变其大小会破坏这一点。</translation>
    </message>
    <message>
        <source>Begin from scratch</source>
        <translation>从零开始</translation>
    </message>
    <message>
        <source>Begin with these weights</source>
        <translation>从这些权重开始</translation>
    </message>
    <message>
        <source>Takes the weights out of the recipe; the graph stays as it is</source>
        <translation>从配方中去掉这些权重；图保持不变</translation>
    </message>
    <message>
        <source>Sets the recipe&apos;s initial weights, and its tokenizer where the folder has one</source>
        <translation>设定配方的初始权重；若文件夹中有分词器，也一并设定</translation>
    </message>
</context>
<context>
    <name>celloom::ui::WelcomePage</name>
    <message>
        <source>Build and train language models, cell by cell</source>
        <translation>逐个单元，构建并训练语言模型</translation>
    </message>
    <message>
        <source>Celloom is a workbench for large language models: a network drawn as a graph of cells, a recipe that says how to train it, an engine that runs on while this window is closed, and a history of every run.</source>
        <translation>Celloom 是大语言模型的工作台：用单元组成的图描述网络，用配方说明如何训练，引擎在窗口关闭后仍继续运行，历史中保留每一次运行。</translation>
    </message>
    <message>
        <source>Your own recipe</source>
        <translation>自己的配方</translation>
    </message>
    <message>
        <source>A recipe is one JSON file with everything about a run: model, data, optimizer, precision, seed.</source>
        <translation>配方是一个 JSON 文件，包含一次运行的全部内容：模型、数据、优化器、精度、随机种子。</translation>
    </message>
    <message>
        <source>Open recipe…</source>
        <translation>打开配方…</translation>
    </message>
    <message>
        <source>Recent runs</source>
        <translation>最近的运行</translation>
    </message>
    <message>
        <source>Pretrain Baichuan tiny on 三国演义</source>
        <translation>用《三国演义》预训练 Baichuan tiny</translation>
    </message>
    <message>
        <source>A Baichuan model of about 5 million parameters learns classical Chinese from the novel Romance of the Three Kingdoms, from random weights to text you can read.</source>
        <translation>一个约五百万参数的 Baichuan 模型从小说《三国演义》学习文言白话，从随机权重一直到写出可读的文字。</translation>
    </message>
    <message>
        <source>Two cores: a first sample of text within two minutes, about ten minutes in all. It goes on when this window is closed.</source>
        <translation>两核处理器：两分钟内看到第一段样例，全程约十分钟。关闭窗口后仍继续。</translation>
    </message>
    <message>
        <source>Run</source>
        <translation>运行</translation>
    </message>
    <message>
        <source>Run the example %1</source>
        <translation>运行示例 %1</translation>
    </message>
    <message>
        <source>Open in the Train page</source>
        <translation>在训练页打开</translation>
    </message>
    <message>
        <source>step %1 of %2</source>
        <translation>第 %1 / %2 步</translation>
    </message>
    <message>
        <source>All runs in the history</source>
        <translation>历史中的全部运行</translation>
    </message>
    <message>
        <source>Fine-tune</source>
        <translation>微调</translation>
    </message>
    <message>
        <source>Pretrain</source>
        <translation>预训练</translation>
    </message>
    <message>
        <source>Open the example %1 in the Train page</source>
        <translation>在训练页打开示例 %1</translation>
    </message>
    <message>
        <source>Fine-tune InternLM with LoRA: which mark ends the sentence?</source>
        <translation>用 LoRA 微调 InternLM：这句话该用什么标点？</translation>
    </message>
    <message>
        <source>A small InternLM that knows the novel learns to answer a question: which mark closes this sentence? Only small matrices beside its frozen weights learn; then base and adapter answer side by side in Try.</source>
        <translation>一个读过小说的小型 InternLM 学习回答：这句话该用什么标点结尾？只有冻结权重旁的低秩矩阵参与学习；随后可在试用页并排比较基座与适配器。</translation>
    </message>
    <message>
        <source>Two cores: a few minutes. Held-out questions are counted before and after.</source>
        <translation>双核约需几分钟。训练前后都会统计留出问题的正确数。</translation>
    </message>
    <message>
        <source>Needs the folder %1 with the base&apos;s weights beside the recipe, or another under Weights.</source>
        <translation>需要配方旁有含基座权重的文件夹 %1，或在“权重”中另行指定。</translation>
    </message>
    <message>
        <source>Fine-tunes %1.</source>
        <translation>微调 %1。</translation>
    </message>
    <message>
        <source>Pretrains %1.</source>
        <translation>预训练 %1。</translation>
    </message>
    <message>
        <source>Transformer blocks that read 三国演义</source>
        <translation>阅读《三国演义》的 Transformer 块</translation>
    </message>
    <message>
        <source>A language model of a few plain Transformer blocks, attention and feed-forward each with its norm, that soon foretells the novel better than counts of neighbouring tokens do.</source>
        <translation>由几个朴素的 Transformer 块（注意力与前馈网络各带归一化）组成的语言模型，很快就比相邻词元的统计更会预测这部小说。</translation>
    </message>
    <message>
        <source>Cross-attention: a question looks at pixels</source>
        <translation>交叉注意力：让问题去看像素</translation>
    </message>
    <message>
        <source>Is this handwritten digit even, odd, above four, below five? The question&apos;s token attends to the 64 pixels and answers yes or no.</source>
        <translation>这个手写数字是偶数、奇数、大于四，还是小于五？问题的词元关注 64 个像素，回答是或否。</translation>
    </message>
    <message>
        <source>Multi-modal: a picture and words</source>
        <translation>多模态：一幅图与几个词</translation>
    </message>
    <message>
        <source>A picture of a digit and the words of a question meet in a gate. Neither alone tells the answer, the two together do.</source>
        <translation>数字的图像与问题的词语在门控中相遇。单看哪一个都不知道答案，合起来才知道。</translation>
    </message>
    <message>
        <source>Multi-task: kind and colour of wines</source>
        <translation>多任务：葡萄酒的品种与颜色</translation>
    </message>
    <message>
        <source>From twelve measurements of a wine one net tells its cultivar and the intensity of its colour: two outputs, each with a loss and a weight.</source>
        <translation>一个网络根据葡萄酒的十二项测量值判断其品种和颜色强度：两个输出，各有自己的损失和权重。</translation>
    </message>
    <message>
        <source>Images: handwritten digits</source>
        <translation>图像：手写数字</translation>
    </message>
    <message>
        <source>Convolutions, batch norms and pools learn ten digits from a folder of pictures.</source>
        <translation>卷积、批归一化和池化从一个图片文件夹中学会十个数字。</translation>
    </message>
    <message>
        <source>Two cores: about a minute.</source>
        <translation>双核：约一分钟。</translation>
    </message>
    <message>
        <source>Pretrain a small InternLM on 三国演义</source>
        <translation>用《三国演义》预训练一个小型 InternLM</translation>
    </message>
    <message>
        <source>An InternLM of five layers reads the novel from random weights for 3,000 steps: the base that the example with the closing mark tunes.</source>
        <translation>一个五层的 InternLM 从随机权重开始读这部小说，共 3,000 步；“句末标点”示例微调的底座就是它。</translation>
    </message>
    <message>
        <source>Fine-tune InternLM-7B with LoRA</source>
        <translation>用 LoRA 微调 InternLM-7B</translation>
    </message>
    <message>
        <source>Adapters on the attention of all layers learn to follow instructions from the Alpaca data, in half precision with recomputation: for a large GPU.</source>
        <translation>在所有层的注意力上加适配器，用 Alpaca 数据学习按指令回答；半精度加重计算，需要一块大显存 GPU。</translation>
    </message>
</context>
</TS>
