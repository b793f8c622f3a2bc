Attribute VB_Name = "Hairspring"
' Hairspring for VBA: exact delays and a calibrated time base in Excel and its relatives, 64-bit only.
'
' Import this file (File, Import), and put hairspring.dll beside the workbook's program, into a folder of PATH, or anywhere
' after ChDrive and ChDir to it. In a cell:
'
'     =HS_Delay_us(100)      waits at least 100 microseconds and shows by how many it was late
'     =HS_Now_us()           the time now, in microseconds
'
' The declarations are those of hairspring.h, whose comments say what each function does and what it refuses; the names,
' the numbers and the kinds of their arguments are compared with it by the project's tests. Microseconds are Doubles;
' nanoseconds and counts of 64 bits are LongLong; handles are LongPtr. Where the header allows NULL for a result, the
' argument is "As Any": pass a variable of the type that the header names, or ByVal CLngPtr(0). A Boolean of a structure
' is a Byte: 0 is no, anything else yes, so that wishes.lock_memory = True asks for it. The size of a structure that has one is
' LenB of it: wishes.size = LenB(wishes). Texts that go in are UTF-8 that
' ends in a zero: bytes = HS_Utf8(text), and then VarPtr(bytes(0)). A time base may be used from every procedure; a long delay and a profile belong to one at a time.
'
' A delay is never early. Excel stands still meanwhile: it is one thread that waits.
Option Explicit

Public Const HS_OK As Long = 0
Public Const HS_E_NULL As Long = -1
Public Const HS_E_HANDLE As Long = -2
Public Const HS_E_FREED As Long = -3
Public Const HS_E_BUSY As Long = -4
Public Const HS_E_THREAD As Long = -5
Public Const HS_E_NAN As Long = -6
Public Const HS_E_NEGATIVE As Long = -7
Public Const HS_E_RANGE As Long = -8
Public Const HS_E_TOO_LONG_TO_POLL As Long = -9
Public Const HS_E_EPOCH As Long = -10
Public Const HS_E_CANCELLED As Long = -11
Public Const HS_E_CALIBRATION As Long = -12
Public Const HS_E_IO As Long = -13
Public Const HS_E_TEXT As Long = -14
Public Const HS_E_SHEET As Long = -15
Public Const HS_E_COMMAND As Long = -16
Public Const HS_E_READ_ONLY As Long = -17
Public Const HS_E_ORDER As Long = -18
Public Const HS_E_NOT_FOUND As Long = -19
Public Const HS_E_REFUSED As Long = -20
Public Const HS_E_TIMED_OUT As Long = -21
Public Const HS_E_KILLED As Long = -22
Public Const HS_E_CALLER As Long = -23
Public Const HS_E_FULL As Long = -24
Public Const HS_E_EMPTY As Long = -25
Public Const HS_E_STATE As Long = -26
Public Const HS_E_OVERFLOW As Long = -27
Public Const HS_E_DEADLOCK As Long = -28
Public Const HS_E_NOT_OWNER As Long = -29
Public Const HS_E_CEILING As Long = -30
Public Const HS_E_NOT_ACKNOWLEDGED As Long = -31
Public Const HS_E_TOO_MANY As Long = -32
Public Const HS_E_PANIC As Long = -99
Public Const HS_VERSION_MAJOR As Long = 0
Public Const HS_VERSION_MINOR As Long = 1
Public Const HS_VERSION_PATCH As Long = 0
' Stands for a time that was not taken.
Public Const HS_ABSENT_NS As LongLong = &H8000000000000000^
Public Const HS_SOURCE_COUNTER As Long = 0
Public Const HS_SOURCE_KERNEL_CLOCK As Long = 1
Public Const HS_CONTINUED As Long = 0
Public Const HS_RERATED As Long = 1
Public Const HS_SUSPENDED As Long = 2
Public Const HS_STEPPED As Long = 3
Public Const HS_DISTRUSTED As Long = 4
Public Const HS_VERDICT_CLEAN As Long = 0
Public Const HS_VERDICT_MIGRATED As Long = 1
Public Const HS_VERDICT_OVERSLEPT As Long = 2
Public Const HS_VERDICT_BUDGET_SPENT As Long = 3
Public Const HS_VERDICT_INTERRUPTED As Long = 4
Public Const HS_VERDICT_INTERRUPTED_OR_STOLEN As Long = 5
Public Const HS_VERDICT_STOLEN As Long = 6
Public Const HS_VERDICT_UNKNOWN As Long = 7
Public Const HS_VERDICT_PREEMPTED As Long = 8
Public Const HS_VERDICT_RERATED As Long = 9
Public Const HS_CAUSES As Long = 5
Public Const HS_POLICY_KEEP As Long = 0
Public Const HS_POLICY_OTHER As Long = 1
Public Const HS_POLICY_FIFO As Long = 2
Public Const HS_POLICY_ROUND_ROBIN As Long = 3
Public Const HS_IDLE_OFF As Long = 1
Public Const HS_NOT_ASKED As Long = 0
Public Const HS_GRANTED As Long = 1
Public Const HS_REFUSED As Long = 2

Public Type hs_continuity
    kind As Long
    by_ns As LongLong
End Type

Public Type hs_calibration
    frequency_hz As Double
    bound_ppm As Double
    baseline_ns As LongLong
    discipline_ppm As Double
    wall_ns As LongLong
    cpu_ns As LongLong
    skew_ns As LongLong
    epoch As Long
End Type

Public Type hs_trust
    trusted As Byte
    guest As Byte
    source As Long
    reasons As Long
    text As LongPtr
End Type

Public Type hs_instant
    monotonic_ns As LongLong
    epoch As Long
End Type

Public Type hs_gaps
    count As Long
    total_ns As LongLong
    longest_ns As LongLong
End Type

Public Type hs_report
    requested_ns As LongLong
    actual_ns As LongLong
    late_ns As LongLong
    slept_ns As LongLong
    polled_ns As LongLong
    window_ns As LongLong
    overslept_ns As LongLong
    verdict As Long
    migrated As Byte
    budget_spent As Byte
    throttled As Byte
    rerated As Byte
    gaps(0 To HS_CAUSES - 1) As hs_gaps
End Type

Public Type hs_summary
    count As LongLong
    first_ns As LongLong
    min_ns As LongLong
    median_ns As LongLong
    max_ns As LongLong
    mean_ns As LongLong
    call_cost_ns As LongLong
End Type

Public Type hs_wishes
    size As LongPtr
    policy As Long
    priority As Long
    cpu As Long
    lock_memory As Byte
    slack_ns As LongLong
    idle_ns As LongLong
End Type

Public Type hs_grants
    size As LongPtr
    policy As Long
    cpu As Long
    lock_memory As Long
    slack As Long
    idle As Long
    refusal As LongPtr
End Type

Public Type hs_contents
    host As LongPtr
    chapters As Long
    rows As Long
    absent As Long
End Type

Public Type hs_row
    id As LongPtr
    label As LongPtr
    unit As LongPtr
    method As LongPtr
    n As LongLong
    min As Double
    q1 As Double
    median As Double
    q3 As Double
    p99 As Double
    max As Double
    reason As LongPtr
    remedy As LongPtr
End Type

' VBA does not tell small letters from capitals: what has the name of a function below ends in _of here.
Public Declare PtrSafe Function hs_strerror Lib "hairspring" (ByVal code As Long) As LongPtr
Public Declare PtrSafe Function hs_error_name Lib "hairspring" (ByVal code As Long) As LongPtr
Public Declare PtrSafe Function hs_last_error Lib "hairspring" () As LongPtr
Public Declare PtrSafe Function hs_version_of Lib "hairspring" Alias "hs_version" () As LongPtr
Public Declare PtrSafe Function hs_calibrate Lib "hairspring" (ByRef timebase As LongPtr) As Long
Public Declare PtrSafe Function hs_calibrate_to Lib "hairspring" ( _
    ByVal bound_ppm As Double, ByVal patience_ns As LongLong, ByRef timebase As LongPtr) As Long
Public Declare PtrSafe Function hs_timebase_refine Lib "hairspring" ( _
    ByVal timebase As LongPtr, ByRef successor As LongPtr, ByRef continuity As Any) As Long
Public Declare PtrSafe Function hs_timebase_free Lib "hairspring" (ByVal timebase As LongPtr) As Long
Public Declare PtrSafe Function hs_timebase_calibration Lib "hairspring" ( _
    ByVal timebase As LongPtr, ByRef calibration As hs_calibration) As Long
Public Declare PtrSafe Function hs_timebase_trust Lib "hairspring" ( _
    ByVal timebase As LongPtr, ByRef trust As hs_trust) As Long
Public Declare PtrSafe Function hs_timebase_reason Lib "hairspring" ( _
    ByVal timebase As LongPtr, ByVal index As Long, ByRef text As LongPtr) As Long
Public Declare PtrSafe Function hs_timebase_offset_bound_ns Lib "hairspring" ( _
    ByVal timebase As LongPtr, ByRef at As hs_instant, ByRef offset_bound_ns As LongLong) As Long
Public Declare PtrSafe Function hs_now_ns Lib "hairspring" (ByVal timebase As LongPtr) As LongLong
Public Declare PtrSafe Function hs_now_us_of Lib "hairspring" Alias "hs_now_us" (ByVal timebase As LongPtr) As Double
Public Declare PtrSafe Function hs_now Lib "hairspring" ( _
    ByVal timebase As LongPtr, ByRef now As hs_instant) As Long
Public Declare PtrSafe Function hs_now_ordered Lib "hairspring" ( _
    ByVal timebase As LongPtr, ByRef now As hs_instant) As Long
Public Declare PtrSafe Function hs_difference_ns Lib "hairspring" ( _
    ByRef later As hs_instant, ByRef earlier As hs_instant, ByRef difference_ns As LongLong) As Long
Public Declare PtrSafe Function hs_verdict_name Lib "hairspring" (ByVal verdict As Long) As LongPtr
Public Declare PtrSafe Function hs_delay_ns Lib "hairspring" ( _
    ByVal timebase As LongPtr, ByVal request_ns As LongLong, ByRef report As Any) As Long
Public Declare PtrSafe Function hs_delay_us_of Lib "hairspring" Alias "hs_delay_us" ( _
    ByVal timebase As LongPtr, ByVal request_us As Double, ByRef report As Any) As Long
Public Declare PtrSafe Function hs_delay_until Lib "hairspring" ( _
    ByVal timebase As LongPtr, ByRef deadline As hs_instant, ByRef report As Any) As Long
Public Declare PtrSafe Function hs_delay_polling_ns Lib "hairspring" ( _
    ByVal timebase As LongPtr, ByVal request_ns As LongLong, ByVal budget_ns As LongLong, ByRef report As Any) As Long
Public Declare PtrSafe Function hs_long_delay_new Lib "hairspring" ( _
    ByVal timebase As LongPtr, ByRef long_delay As LongPtr) As Long
Public Declare PtrSafe Function hs_long_delay_adopt Lib "hairspring" ( _
    ByVal long_delay As LongPtr, ByVal successor As LongPtr) As Long
Public Declare PtrSafe Function hs_long_delay_free Lib "hairspring" (ByVal long_delay As LongPtr) As Long
Public Declare PtrSafe Function hs_long_delay_ns Lib "hairspring" ( _
    ByVal long_delay As LongPtr, ByVal request_ns As LongLong, ByRef report As Any) As Long
Public Declare PtrSafe Function hs_long_delay_us_of Lib "hairspring" Alias "hs_long_delay_us" ( _
    ByVal long_delay As LongPtr, ByVal request_us As Double, ByRef report As Any) As Long
Public Declare PtrSafe Function hs_long_delay_until Lib "hairspring" ( _
    ByVal long_delay As LongPtr, ByRef deadline As hs_instant, ByRef report As Any) As Long
Public Declare PtrSafe Function hs_long_delay_tune Lib "hairspring" ( _
    ByVal long_delay As LongPtr, ByVal request_ns As LongLong, ByRef lead_ns As Any) As Long
Public Declare PtrSafe Function hs_long_delay_set_lead_ns Lib "hairspring" ( _
    ByVal long_delay As LongPtr, ByVal lead_ns As LongLong) As Long
Public Declare PtrSafe Function hs_long_delay_lead_ns Lib "hairspring" ( _
    ByVal long_delay As LongPtr, ByRef lead_ns As LongLong) As Long
Public Declare PtrSafe Function hs_long_delay_set_budget_ns Lib "hairspring" ( _
    ByVal long_delay As LongPtr, ByVal budget_ns As LongLong) As Long
Public Declare PtrSafe Function hs_long_delay_window_ns Lib "hairspring" ( _
    ByVal long_delay As LongPtr, ByVal request_ns As LongLong, ByRef window_ns As LongLong) As Long
Public Declare PtrSafe Function hs_long_delay_cancel Lib "hairspring" (ByVal long_delay As LongPtr) As Long
Public Declare PtrSafe Function hs_long_delay_resume Lib "hairspring" (ByVal long_delay As LongPtr) As Long
Public Declare PtrSafe Function hs_long_delay_begin_ns Lib "hairspring" ( _
    ByVal long_delay As LongPtr, ByVal request_ns As LongLong, ByVal since_ns As LongLong, _
    ByRef left_ns As LongLong) As Long
Public Declare PtrSafe Function hs_long_delay_begin_us Lib "hairspring" ( _
    ByVal long_delay As LongPtr, ByVal request_us As Double, ByVal since_ns As LongLong, _
    ByRef left_ns As LongLong) As Long
Public Declare PtrSafe Function hs_long_delay_begin_until Lib "hairspring" ( _
    ByVal long_delay As LongPtr, ByRef deadline As hs_instant, ByRef left_ns As LongLong) As Long
Public Declare PtrSafe Function hs_long_delay_finish Lib "hairspring" ( _
    ByVal long_delay As LongPtr, ByRef report As Any) As Long
Public Declare PtrSafe Function hs_profile_new Lib "hairspring" ( _
    ByVal timebase As LongPtr, ByVal ordered As Long, ByRef profile As LongPtr) As Long
Public Declare PtrSafe Function hs_profile_adopt Lib "hairspring" ( _
    ByVal profile As LongPtr, ByVal successor As LongPtr) As Long
Public Declare PtrSafe Function hs_profile_start Lib "hairspring" (ByVal profile As LongPtr) As Long
Public Declare PtrSafe Function hs_profile_stop Lib "hairspring" ( _
    ByVal profile As LongPtr, ByRef span_ns As Any) As Long
Public Declare PtrSafe Function hs_profile_summary Lib "hairspring" ( _
    ByVal profile As LongPtr, ByRef summary As hs_summary) As Long
Public Declare PtrSafe Function hs_profile_free Lib "hairspring" (ByVal profile As LongPtr) As Long
Public Declare PtrSafe Function hs_real_time_apply Lib "hairspring" ( _
    ByRef wishes As hs_wishes, ByRef real_time As LongPtr, ByRef grants As Any) As Long
Public Declare PtrSafe Function hs_real_time_grants Lib "hairspring" ( _
    ByVal real_time As LongPtr, ByRef grants As hs_grants) As Long
Public Declare PtrSafe Function hs_real_time_free Lib "hairspring" (ByVal real_time As LongPtr) As Long
Public Declare PtrSafe Function hs_window_open Lib "hairspring" ( _
    ByVal path As LongPtr, ByVal writable As Long, ByRef window As LongPtr) As Long
Public Declare PtrSafe Function hs_window_bytes Lib "hairspring" ( _
    ByVal window As LongPtr, ByRef bytes As LongPtr) As Long
Public Declare PtrSafe Function hs_window_read_u32 Lib "hairspring" ( _
    ByVal window As LongPtr, ByVal offset_bytes As LongPtr, ByRef value As Long) As Long
Public Declare PtrSafe Function hs_window_write_u32 Lib "hairspring" ( _
    ByVal window As LongPtr, ByVal offset_bytes As LongPtr, ByVal value As Long) As Long
Public Declare PtrSafe Function hs_window_free Lib "hairspring" (ByVal window As LongPtr) As Long
Public Declare PtrSafe Function hs_sheet_take Lib "hairspring" ( _
    ByVal only As LongPtr, ByVal quick As Long, ByRef sheet As LongPtr) As Long
Public Declare PtrSafe Function hs_sheet_read Lib "hairspring" ( _
    ByVal path As LongPtr, ByRef sheet As LongPtr) As Long
Public Declare PtrSafe Function hs_sheet_json Lib "hairspring" ( _
    ByVal sheet As LongPtr, ByRef json As LongPtr) As Long
Public Declare PtrSafe Function hs_sheet_contents Lib "hairspring" ( _
    ByVal sheet As LongPtr, ByRef contents As hs_contents) As Long
Public Declare PtrSafe Function hs_sheet_row Lib "hairspring" ( _
    ByVal sheet As LongPtr, ByVal index As Long, ByRef row As hs_row) As Long
Public Declare PtrSafe Function hs_sheet_find Lib "hairspring" ( _
    ByVal sheet As LongPtr, ByVal id As LongPtr, ByRef row As hs_row) As Long
Public Declare PtrSafe Function hs_sheet_free Lib "hairspring" (ByVal sheet As LongPtr) As Long

Private Declare PtrSafe Function lstrlenA Lib "kernel32" (ByVal text As LongPtr) As Long
Private Declare PtrSafe Function MultiByteToWideChar Lib "kernel32" ( _
    ByVal page As Long, ByVal flags As Long, ByVal text As LongPtr, ByVal bytes As Long, ByVal wide As LongPtr, _
    ByVal room As Long) As Long
Private Declare PtrSafe Function WideCharToMultiByte Lib "kernel32" ( _
    ByVal page As Long, ByVal flags As Long, ByVal wide As LongPtr, ByVal letters As Long, ByVal text As LongPtr, _
    ByVal room As Long, ByVal substitute As LongPtr, ByVal substituted As LongPtr) As Long

Private Const UTF8 As Long = 65001
' #VALUE!, by its number, so that programs other than Excel know it too.
Private Const ERROR_VALUE As Long = 2015
' What is added to a code to raise it: the numbers below this one are those of COM itself.
Private Const ERROR_FIRST As Long = 513

Private shared_timebase As LongPtr
Private shared_long_delay As LongPtr

' The time base of this project, calibrated when it is first asked for (4 to 5 ms). Raises an error if there is none.
Public Function HS_Timebase() As LongPtr
    If shared_timebase = 0 Then HS_Check hs_calibrate(shared_timebase)
    HS_Timebase = shared_timebase
End Function

' The time now, in microseconds. In a cell it is read anew whenever the sheet is calculated.
Public Function HS_Now_us() As Double
    Dim program As Object
    ' Late bound: other programs than Excel have no such method, and no cells either.
    On Error Resume Next
    Set program = Application
    program.Volatile True
    On Error GoTo 0
    HS_Now_us = hs_now_us_of(HS_Timebase())
End Function

' Waits at least so long, from 0 to 100,000 microseconds, and yields by how many it was late; #VALUE! for what is refused.
Public Function HS_Delay_us(ByVal request_us As Double) As Variant
    Dim report As hs_report
    On Error GoTo Refused
    HS_Check hs_delay_us_of(HS_Timebase(), request_us, report)
    HS_Delay_us = CDbl(report.late_ns) / 1000#
    Exit Function
Refused:
    HS_Delay_us = CVErr(ERROR_VALUE)
End Function

' The same asleep for all but the end, for requests of a millisecond and more.
Public Function HS_LongDelay_us(ByVal request_us As Double) As Variant
    Dim report As hs_report
    On Error GoTo Refused
    If shared_long_delay = 0 Then HS_Check hs_long_delay_new(HS_Timebase(), shared_long_delay)
    HS_Check hs_long_delay_us_of(shared_long_delay, request_us, report)
    HS_LongDelay_us = CDbl(report.late_ns) / 1000#
    Exit Function
Refused:
    HS_LongDelay_us = CVErr(ERROR_VALUE)
End Function

' One figure of a sheet in a file: a row of cells with its median, unit, number of samples, first and third quartile;
' #VALUE! where there is none.
Public Function HS_Figure(ByVal file As String, ByVal figure As String) As Variant
    Dim sheet As LongPtr, row As hs_row, path() As Byte, id() As Byte
    On Error GoTo Refused
    path = HS_Utf8(file)
    id = HS_Utf8(figure)
    HS_Check hs_sheet_read(VarPtr(path(0)), sheet)
    HS_Check hs_sheet_find(sheet, VarPtr(id(0)), row)
    If row.unit = 0 Then Err.Raise vbObjectError + ERROR_FIRST, "hairspring", HS_Text(row.reason)
    HS_Figure = Array(row.median, HS_Text(row.unit), CDbl(row.n), row.q1, row.q3)
    hs_sheet_free sheet
    Exit Function
Refused:
    If sheet <> 0 Then hs_sheet_free sheet
    HS_Figure = CVErr(ERROR_VALUE)
End Function

' The version of the library.
Public Function HS_Version() As String
    HS_Version = HS_Text(hs_version_of())
End Function

' What the latest error was, in a whole sentence.
Public Function HS_LastError() As String
    HS_LastError = HS_Text(hs_last_error())
End Function

' Gives back what the functions above have made; they make it anew when they are used again.
Public Sub HS_Close()
    If shared_long_delay <> 0 Then hs_long_delay_free shared_long_delay
    If shared_timebase <> 0 Then hs_timebase_free shared_timebase
    shared_long_delay = 0
    shared_timebase = 0
End Sub

' Raises an error with the library's own sentence for a code that is none of success: vbObjectError + 513 - code.
Public Sub HS_Check(ByVal code As Long)
    If code <> HS_OK Then Err.Raise vbObjectError + ERROR_FIRST - code, "hairspring", HS_LastError()
End Sub

' A text of the library, which is UTF-8.
Public Function HS_Text(ByVal text As LongPtr) As String
    Dim bytes As Long, room As Long
    If text = 0 Then Exit Function
    bytes = lstrlenA(text)
    If bytes = 0 Then Exit Function
    room = MultiByteToWideChar(UTF8, 0, text, bytes, 0, 0)
    HS_Text = String$(room, vbNullChar)
    MultiByteToWideChar UTF8, 0, text, bytes, StrPtr(HS_Text), room
End Function

' A text as the library takes it: UTF-8 that ends in a zero.
Public Function HS_Utf8(ByVal text As String) As Byte()
    Dim bytes() As Byte, room As Long
    room = WideCharToMultiByte(UTF8, 0, StrPtr(text), Len(text), 0, 0, 0, 0)
    ReDim bytes(0 To room)
    If room > 0 Then WideCharToMultiByte UTF8, 0, StrPtr(text), Len(text), VarPtr(bytes(0)), room, 0, 0
    HS_Utf8 = bytes
End Function

' An example: a hundred delays of 50 microseconds, and how late they were, in the Immediate window.
Public Sub HS_Example()
    Dim number As Long, late_us As Double, most_us As Double
    For number = 1 To 100
        late_us = HS_Delay_us(50)
        If late_us > most_us Then most_us = late_us
    Next number
    Debug.Print "hairspring " & HS_Version() & ": the latest of 100 came " & most_us & " us late"
    HS_Close
End Sub
