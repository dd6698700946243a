# What the BEAM takes for the same things. Prints one JSON object: wall µs per
# operation, the least of five blocks, since a VM with several threads has no
# CPU time that could be split.

defmodule Bench.Server do
  use GenServer, restart: :permanent
  def start_link(arg), do: GenServer.start_link(__MODULE__, arg)

  def init({:tell, pid}) do
    send(pid, {:up, self()})
    {:ok, 0}
  end

  def init(count), do: {:ok, count}
  def handle_call(:get, _from, count), do: {:reply, count, count + 1}
  def handle_cast(:add, count), do: {:noreply, count + 1}
end

defmodule Bench do
  def time(run, operations, smoke) do
    n = if smoke, do: max(div(operations, 200), 10), else: operations
    run.(max(div(n, 10), 1))

    costs =
      for _ <- 1..5 do
        {micros, _} = :timer.tc(fn -> run.(n) end)
        micros / n
      end

    Enum.min(costs)
  end

  def call(server, n), do: repeat(n, fn -> GenServer.call(server, :get) end)

  def cast(server, n) do
    repeat(n, fn -> GenServer.cast(server, :add) end)
    GenServer.call(server, :get)
  end

  # A supervisor's list of restarts grows for a second at least, and is walked at
  # each restart: a fresh supervisor per hundred, so that it stays short.
  def restart(n), do: repeat(max(div(n, 100), 1), fn -> hundred_restarts() end)

  defp hundred_restarts() do
    {:ok, sup} =
      Supervisor.start_link([{Bench.Server, {:tell, self()}}],
        strategy: :one_for_one, max_restarts: 1_000, max_seconds: 1)

    pid = receive do: ({:up, pid} -> pid)
    killed(pid, 100)
    Supervisor.stop(sup)
  end

  def nolink(n) do
    {:ok, sup} = Task.Supervisor.start_link()
    repeat(n, fn -> Task.await(Task.Supervisor.async_nolink(sup, fn -> 1 end)) end)
    Supervisor.stop(sup)
  end

  defp killed(_pid, 0), do: :ok

  defp killed(pid, n) do
    Process.exit(pid, :kill)
    killed(receive(do: ({:up, next} -> next)), n - 1)
  end

  defp repeat(0, _), do: :ok

  defp repeat(n, fun) do
    fun.()
    repeat(n - 1, fun)
  end
end

[function | rest] = System.argv()
smoke = "--smoke" in rest
Logger.configure(level: :none)

figure =
  case function do
    "call" ->
      {:ok, server} = Bench.Server.start_link(0)
      Bench.time(&Bench.call(server, &1), 200_000, smoke)

    "cast" ->
      {:ok, server} = Bench.Server.start_link(0)
      Bench.time(&Bench.cast(server, &1), 200_000, smoke)

    "restart" ->
      Bench.time(&Bench.restart/1, 5_000, smoke)

    "nolink" ->
      Bench.time(&Bench.nolink/1, 20_000, smoke)
  end

IO.puts(~s({"#{function}": #{figure}}))
